#include "replay/record/content_digest.h"

namespace areal::record {

void ContentDigest::add_table(std::string_view create_statement) {
  schema_ = chain_digest(schema_, hash_text(create_statement));
  sums_.emplace_back();
}

void ContentDigest::add_row(std::size_t table, std::span<const Cell> cells) {
  row_.clear();
  for (const Cell& cell : cells) {
    row_.u8(static_cast<std::uint8_t>(cell.index()));
    if (const auto* number = std::get_if<std::int64_t>(&cell)) {
      row_.u64(static_cast<std::uint64_t>(*number));
    } else if (const auto* text = std::get_if<std::string_view>(&cell)) {
      row_.text(*text);
    } else if (const auto* bytes = std::get_if<std::span<const std::uint8_t>>(&cell)) {
      row_.varint(bytes->size());
      row_.bytes(*bytes);
    }
  }
  sums_[table].add(hash_bytes(row_.view()));
}

Digest128 ContentDigest::digest() const {
  Digest128 digest = schema_;
  for (const DigestSum& sum : sums_) digest = chain_digest(digest, sum.total);
  return digest;
}

namespace {

Status add_rows(Database& database, std::size_t table, const std::string& name, ContentDigest& content) {
  auto rows = database.prepare("SELECT * FROM \"" + name + "\" ORDER BY rowid");
  if (!rows) return rows.error();
  std::vector<Cell> cells(static_cast<std::size_t>(rows->columns()));
  const bool is_run = name == "run";
  while (true) {
    const auto more = rows->next();
    if (!more) return more.error();
    if (!*more) return Unit{};
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = rows->cell(static_cast<int>(i));
    if (is_run && rows->text(1) == kContentKey) continue;
    content.add_row(table, cells);
  }
}

}  // namespace

Result<Digest128> content_of(Database& database) {
  ContentDigest content;
  std::vector<std::string> names;
  auto schema = database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY rowid");
  if (!schema) return schema.error();
  while (true) {
    const auto more = schema->next();
    if (!more) return more.error();
    if (!*more) break;
    if (schema->text(0) != "table") return Error{Errc::kCorrupt, "the file has more than tables"};
    names.push_back(schema->text(1));
    content.add_table(schema->text(2));
  }
  for (std::size_t table = 0; table < names.size(); ++table) {
    AREAL_TRY(add_rows(database, table, names[table], content));
  }
  return content.digest();
}

Status check_content(Database& database) {
  // Finds pages that are used twice and keys out of order, which a scan by row would not notice.
  const auto sound = database.text("PRAGMA quick_check(1)");
  if (!sound) return sound.error();
  if (*sound != "ok") return Error{Errc::kCorrupt, *sound};
  const auto content = content_of(database);
  if (!content) return content.error();
  const auto stored = database.text("SELECT value FROM run WHERE key = '" + std::string(kContentKey) + "'");
  if (!stored) return stored.error();
  if (*stored != to_hex(*content)) return Error{Errc::kCorrupt, "its rows are not those that were written"};
  return Unit{};
}

}  // namespace areal::record
