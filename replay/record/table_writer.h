// Inserts rows into a new recording, keeps their digest, and remembers the first failure.
//
// After a failure nothing more is written: the file stays at its last commit. Not thread-safe.
#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "replay/record/content_digest.h"
#include "replay/record/database.h"
#include "replay/record/schema.h"

namespace areal::record {

class TableWriter {
 public:
  // Makes the file with empty tables, replacing a recording of that name. kInvalid if the name belongs to something
  // else.
  static Result<std::unique_ptr<TableWriter>> create(const std::string& path, std::uint32_t page_size);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  void insert(TableId table, std::initializer_list<Cell> cells);
  // Appends a row whose key is counted by the writer, from 1. Gives the key.
  std::uint64_t append(TableId table, std::initializer_list<Cell> cells_after_key);

  // Writes the content digest and commits what was inserted; nothing if nothing was.
  void commit();
  // Marks the file as complete, commits, and makes it one file. Nothing can be written afterwards.
  void complete();

  // Stops writing for a failure that is not the database's.
  void fail(const Error& error) { keep(error); }
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] Status status() const;

 private:
  explicit TableWriter(Database database) : database_(std::move(database)) {}
  Status prepare(std::uint32_t page_size);
  void keep(Status status);
  Status insert_row(std::size_t table, std::span<const Cell> cells);
  void write(std::size_t table, std::span<const Cell> cells);

  Database database_;
  std::array<std::optional<Statement>, kTableCount> inserts_;
  std::optional<Statement> set_content_;
  std::array<std::uint64_t, kTableCount> keys_{};
  ContentDigest content_;
  std::optional<Error> error_;
  bool in_transaction_ = false;
  bool has_news_ = false;  // Since the last commit.
  bool is_complete_ = false;
};

}  // namespace areal::record
