// The digest over all rows of all tables, kept while writing and computed anew while reading.
//
// Per table the sum modulo 2^128 of its rows' hashes (a row's key is among its values, so order is in the rows), then a
// chain over the CREATE statements and the sums in the order of the tables. The row that holds it is left out.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "replay/record/database.h"

namespace areal::record {

inline constexpr std::string_view kContentKey = "content_digest";

class ContentDigest {
 public:
  // Tables are numbered in the order of these calls.
  void add_table(std::string_view create_statement);
  void add_row(std::size_t table, std::span<const Cell> cells);
  [[nodiscard]] Digest128 digest() const;

 private:
  Digest128 schema_;
  std::vector<DigestSum> sums_;
  ByteWriter row_;
};

// The digest over all rows that the file has now. kCorrupt if it has more than tables or cannot be read.
Result<Digest128> content_of(Database& database);

// Whether the file's rows are those that were written: a sound file and the stored digest. kCorrupt if not.
Status check_content(Database& database);

}  // namespace areal::record
