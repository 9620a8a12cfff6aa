// A thin owner of one SQLite file and its statements; every failure is a Result with SQLite's own words.
//
// Unsigned 64-bit words are stored as the signed number with the same bits. Not thread-safe.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "engine/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace areal::record {

// One value of one column. Text and bytes are looked at, not owned.
using Cell = std::variant<std::monostate, std::int64_t, std::string_view, std::span<const std::uint8_t>>;

inline Cell number_cell(std::uint64_t value) { return static_cast<std::int64_t>(value); }

class Statement {
 public:
  // Binds all cells in order and runs to the end. REQUIRES: the statement gives no rows.
  Status run(std::span<const Cell> cells);
  Status run(std::initializer_list<Cell> cells) { return run(std::span(cells.begin(), cells.size())); }
  // The next row; false at the end.
  Result<bool> next();
  // Cells of the present row, good until next().
  [[nodiscard]] Cell cell(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::span<const std::uint8_t> bytes(int column) const;
  [[nodiscard]] int columns() const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  // Makes a new file; an old one of that name must be gone.
  static Result<Database> create(const std::string& path);
  // Opens an existing file for reading. What a killed writer left beside it is taken into account.
  static Result<Database> open_read(const std::string& path);
  // All of it, in memory, to be changed freely.
  Result<Database> copy_in_memory();

  // REQUIRES: no statement is left, nothing is asked afterwards.
  void close() { handle_.reset(); }

  Status run(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  // The first cell of the first row as a number, or as text; nothing there is an error.
  Result<std::int64_t> integer(std::string_view sql);
  Result<std::string> text(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  explicit Database(sqlite3* handle) : handle_(handle) {}

  std::unique_ptr<sqlite3, Close> handle_;
};

std::string sqlite_version();

}  // namespace areal::record
