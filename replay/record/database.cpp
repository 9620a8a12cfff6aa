#include "replay/record/database.h"

#include <sqlite3.h>

#include <filesystem>

namespace areal::record {

namespace {

// No value of a recording is longer; a damaged length must not make a reader ask for gigabytes.
constexpr int kMaxValueBytes = 256 << 20;

Error sqlite_error(sqlite3* handle, int code) {
  const int primary = code & 0xFF;
  const bool corrupt = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR ||
                       primary == SQLITE_TOOBIG || primary == SQLITE_MISMATCH || primary == SQLITE_CONSTRAINT;
  const Errc errc = corrupt ? Errc::kCorrupt : primary == SQLITE_NOMEM ? Errc::kNoMemory : Errc::kIo;
  return {errc, std::string("sqlite: ") + (handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code))};
}

int bind(sqlite3_stmt* statement, int index, const Cell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return sqlite3_bind_int64(statement, index, *number);
  if (const auto* text = std::get_if<std::string_view>(&cell)) {
    // An empty view may have no address, which SQLite would take for NULL.
    return sqlite3_bind_text64(statement, index, text->empty() ? "" : text->data(), text->size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  }
  if (const auto* bytes = std::get_if<std::span<const std::uint8_t>>(&cell)) {
    return bytes->empty() ? sqlite3_bind_zeroblob(statement, index, 0)
                          : sqlite3_bind_blob64(statement, index, bytes->data(), bytes->size(), SQLITE_STATIC);
  }
  return sqlite3_bind_null(statement, index);
}

std::string file_uri(const std::string& path, std::string_view options) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string uri = "file:";
  // Two slashes at the front would name a machine.
  const std::size_t start = path.starts_with("//") ? path.find_first_not_of('/') - 1 : 0;
  for (const char c : path.substr(start)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || c == '?' || c == '#') {
      uri += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      uri += c;
    }
  }
  return uri + "?" + std::string(options);
}

bool has_content(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size > 0;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Status Statement::run(std::span<const Cell> cells) {
  sqlite3_stmt* statement = statement_.get();
  int code = SQLITE_OK;
  for (std::size_t i = 0; i < cells.size() && code == SQLITE_OK; ++i) {
    code = bind(statement, static_cast<int>(i) + 1, cells[i]);
  }
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
    if (code == SQLITE_DONE) code = SQLITE_OK;
  }
  if (code != SQLITE_OK) {
    Error error = sqlite_error(sqlite3_db_handle(statement), code);
    sqlite3_reset(statement);
    return error;
  }
  sqlite3_reset(statement);
  return Unit{};
}

Result<bool> Statement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return sqlite_error(sqlite3_db_handle(statement_.get()), code);
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::span<const std::uint8_t> Statement::bytes(int column) const {
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_.get(), column);
  if (data == nullptr) return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {reinterpret_cast<const char*>(data), size};
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

Cell Statement::cell(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER:
      return integer(column);
    case SQLITE_TEXT: {
      const std::span<const std::uint8_t> data = bytes(column);
      return std::string_view(reinterpret_cast<const char*>(data.data()), data.size());
    }
    case SQLITE_BLOB:
      return bytes(column);
    default:
      return std::monostate{};
  }
}

Result<Database> Database::create(const std::string& path) {
  sqlite3* handle = nullptr;
  // One thread at a time uses it, so SQLite need not lock.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) return Error{Errc::kIo, path + ": " + sqlite_error(handle, code).detail};
  return database;
}

Result<Database> Database::open_read(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return Error{Errc::kIo, path + ": there is no such file"};
  // A journal of a killed writer is rolled back, its log is read; without either nobody writes and no lock is needed.
  const bool has_journal = has_content(path + "-journal");
  const bool has_log = has_content(path + "-wal");
  const std::string uri = file_uri(path, has_journal ? "mode=rw" : has_log ? "mode=ro" : "mode=ro&immutable=1");
  const int flags = (has_journal ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) return Error{Errc::kIo, path + ": " + sqlite_error(handle, code).detail};
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  AREAL_TRY(database.run("PRAGMA cell_size_check=ON"));
  return database;
}

Result<Database> Database::copy_in_memory() {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database copy(handle);
  if (code != SQLITE_OK) return sqlite_error(handle, code);
  sqlite3_backup* backup = sqlite3_backup_init(handle, "main", handle_.get(), "main");
  if (backup == nullptr) return sqlite_error(handle, sqlite3_errcode(handle));
  sqlite3_backup_step(backup, -1);
  const int copied = sqlite3_backup_finish(backup);
  if (copied != SQLITE_OK) return sqlite_error(handle, copied);
  return copy;
}

Status Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(handle_.get(), code);
  return Unit{};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return sqlite_error(handle_.get(), code);
  return Statement(statement);
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const auto found = statement->next();
  if (!found) return found.error();
  if (!*found) return Error{Errc::kCorrupt, "no value for " + std::string(sql)};
  return statement->integer(0);
}

Result<std::string> Database::text(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const auto found = statement->next();
  if (!found) return found.error();
  if (!*found) return Error{Errc::kCorrupt, "no value for " + std::string(sql)};
  return statement->text(0);
}

std::string sqlite_version() { return sqlite3_libversion(); }

}  // namespace areal::record
