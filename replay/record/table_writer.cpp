#include "replay/record/table_writer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace areal::record {

namespace {

// Where SQLite keeps the application_id: file format, section 1.3.
constexpr std::streamoff kApplicationIdOffset = 68;
constexpr std::size_t kMostColumns = 15;

// Only what is a recording, or empty, may be overwritten.
bool may_replace(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return true;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  if (std::filesystem::file_size(path, error) == 0) return true;
  std::ifstream in(path, std::ios::binary);
  std::array<unsigned char, 4> id{};
  in.seekg(kApplicationIdOffset);
  in.read(reinterpret_cast<char*>(id.data()), id.size());
  const std::int64_t found = std::int64_t{id[0]} << 24 | id[1] << 16 | id[2] << 8 | id[3];
  return in.good() && (found == kOpenId || found == kCompleteId);
}

}  // namespace

Result<std::unique_ptr<TableWriter>> TableWriter::create(const std::string& path, std::uint32_t page_size) {
  if (!may_replace(path)) return Error{Errc::kInvalid, path + ": exists and is no recording; it is left as it is"};
  for (const char* ending : {"", "-journal", "-wal", "-shm"}) {
    std::error_code error;
    std::filesystem::remove(path + ending, error);
  }
  auto database = Database::create(path);
  if (!database) return database.error();
  std::unique_ptr<TableWriter> writer(new TableWriter(std::move(*database)));
  const Status prepared = writer->prepare(page_size);
  if (!prepared) return Error{prepared.error().code, path + ": " + prepared.error().detail};
  return writer;
}

Status TableWriter::prepare(std::uint32_t page_size) {
  // No fsync: a recording outlives its process, not the machine; what a power cut leaves is found out by its digest.
  AREAL_TRY(
      database_.run("PRAGMA page_size=" + std::to_string(page_size) +
                    ";PRAGMA encoding='UTF-8';PRAGMA auto_vacuum=0;PRAGMA synchronous=OFF;PRAGMA temp_store=MEMORY"
                    ";PRAGMA locking_mode=EXCLUSIVE;BEGIN;PRAGMA application_id=" +
                    std::to_string(kOpenId) + ";PRAGMA user_version=" + std::to_string(kSchemaVersion)));
  for (const TableInfo& table : tables()) {
    const std::string sql = create_sql(table);
    AREAL_TRY(database_.run(sql));
    content_.add_table(sql);
  }
  // The row exists from the start and keeps its length, so that the number of commits does not show in the file.
  keys_[0] = 1;
  const std::string digest = to_hex(content_.digest());
  AREAL_TRY(insert_row(0, std::initializer_list<Cell>{std::int64_t{1}, kContentKey, std::string_view(digest)}));
  auto set_content = database_.prepare("UPDATE run SET value = ? WHERE id = 1");
  if (!set_content) return set_content.error();
  set_content_.emplace(std::move(*set_content));
  // The empty tables are written in place, so that the file is a recording from now on; what follows goes to a log
  // first, so that a killed run leaves what it had committed.
  AREAL_TRY(database_.run("COMMIT;PRAGMA journal_mode=WAL;BEGIN"));
  in_transaction_ = true;
  return Unit{};
}

TableWriter::~TableWriter() {
  if (in_transaction_ && !failed()) commit();
}

void TableWriter::keep(Status status) {
  if (!status && !error_) error_ = std::move(status).error();
}

Status TableWriter::status() const {
  if (error_) return *error_;
  return Unit{};
}

// Statements are prepared when they are first used: most recordings of single processes need few of them.
Status TableWriter::insert_row(std::size_t table, std::span<const Cell> cells) {
  std::optional<Statement>& insert = inserts_[table];
  if (!insert) {
    auto prepared = database_.prepare(insert_sql(tables()[table]));
    if (!prepared) return prepared.error();
    insert.emplace(std::move(*prepared));
  }
  return insert->run(cells);
}

void TableWriter::write(std::size_t table, std::span<const Cell> cells) {
  keep(insert_row(table, cells));
  content_.add_row(table, cells);
  has_news_ = true;
}

void TableWriter::insert(TableId table, std::initializer_list<Cell> cells) {
  if (failed() || is_complete_) return;
  write(static_cast<std::size_t>(table), std::span(cells.begin(), cells.size()));
}

std::uint64_t TableWriter::append(TableId table, std::initializer_list<Cell> cells_after_key) {
  const auto index = static_cast<std::size_t>(table);
  const std::uint64_t key = ++keys_[index];
  if (failed() || is_complete_) return key;
  std::array<Cell, kMostColumns> cells;
  cells[0] = number_cell(key);
  std::ranges::copy(cells_after_key, cells.begin() + 1);
  write(index, std::span(cells.data(), cells_after_key.size() + 1));
  return key;
}

void TableWriter::commit() {
  if (failed() || is_complete_ || !has_news_) return;
  has_news_ = false;
  const std::string digest = to_hex(content_.digest());
  keep(set_content_->run({std::string_view(digest)}));
  if (!failed()) keep(database_.run("COMMIT"));
  if (!failed()) keep(database_.run("BEGIN"));
  if (!failed()) return;
  // The answer does not matter: SQLite may have rolled back already.
  static_cast<void>(database_.run("ROLLBACK"));
  in_transaction_ = false;
}

void TableWriter::complete() {
  if (failed() || is_complete_) return;
  keep(database_.run("PRAGMA application_id=" + std::to_string(kCompleteId)));
  has_news_ = true;
  commit();
  if (failed()) return;
  keep(database_.run("COMMIT"));
  in_transaction_ = false;
  is_complete_ = true;
  keep(database_.run("PRAGMA wal_checkpoint(TRUNCATE);PRAGMA journal_mode=DELETE"));
  for (auto& insert : inserts_) insert.reset();
  set_content_.reset();
  database_.close();
}

}  // namespace areal::record
