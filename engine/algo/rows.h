// Where the sequences of a batch lie: rows of one width, or packed one behind the other.
//
// Both are read by the same functions through Rows: row r is the elements [begin(r), end(r)) of the flat arrays. Padded
// tensors of shape [B, L] lie row-major. Pure values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/check.h"

namespace areal::algo {

class Rows {
 public:
  // [rows, width], row-major.
  static Rows padded(std::size_t rows, std::size_t width) {
    Rows made;
    made.bounds_.reserve(rows + 1);
    for (std::size_t row = 0; row <= rows; ++row) made.bounds_.push_back(row * width);
    return made;
  }

  // cu_seqlens: 0, then the end of each sequence. REQUIRES: not empty, begins with 0, never falls.
  static Rows packed(std::span<const std::int32_t> cu_seqlens) {
    AREAL_CHECK(!cu_seqlens.empty() && cu_seqlens.front() == 0);
    Rows made;
    made.bounds_.reserve(cu_seqlens.size());
    for (const std::int32_t bound : cu_seqlens) {
      AREAL_CHECK(bound >= 0 && (made.bounds_.empty() || static_cast<std::size_t>(bound) >= made.bounds_.back()));
      made.bounds_.push_back(static_cast<std::size_t>(bound));
    }
    return made;
  }

  [[nodiscard]] std::size_t size() const { return bounds_.size() - 1; }
  [[nodiscard]] std::size_t elements() const { return bounds_.back(); }
  [[nodiscard]] std::size_t begin(std::size_t row) const { return bounds_[row]; }
  [[nodiscard]] std::size_t end(std::size_t row) const { return bounds_[row + 1]; }
  [[nodiscard]] std::size_t length(std::size_t row) const { return end(row) - begin(row); }

  template <class Value>
  [[nodiscard]] std::span<Value> of(std::span<Value> flat, std::size_t row) const {
    return flat.subspan(begin(row), length(row));
  }

 private:
  std::vector<std::size_t> bounds_;
};

}  // namespace areal::algo
