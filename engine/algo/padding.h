// Rows of different lengths side by side, and apart again.
//
// What is filled in looks like a prompt: version and turn -1. The reference fills in 0 there, which reads as version 0
// and turn 0 wherever a mask is forgotten. Pure functions. Source: spec 0.3.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/check.h"

namespace areal::algo {

constexpr std::int64_t kNoVersion = -1;
constexpr std::int32_t kNoTurn = -1;

// [rows, S] row-major, with S the longest row and at least `width`; `filler` behind the end of each.
template <class Value>
std::vector<Value> padded_rows(std::span<const std::vector<Value>> rows, Value filler, std::size_t width = 0) {
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<Value> flat(rows.size() * width, filler);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    std::ranges::copy(rows[at], flat.begin() + static_cast<std::ptrdiff_t>(at * width));
  }
  return flat;
}

// The first lengths[r] values of each row of [rows, width]. REQUIRES: lengths of at most width; as many values.
template <class Value>
std::vector<std::vector<Value>> unpadded_rows(std::span<const Value> flat, std::size_t width,
                                              std::span<const std::size_t> lengths) {
  AREAL_CHECK(flat.size() == width * lengths.size());
  std::vector<std::vector<Value>> rows;
  for (std::size_t at = 0; at < lengths.size(); ++at) {
    AREAL_CHECK(lengths[at] <= width);
    const auto own = flat.subspan(at * width, lengths[at]);
    rows.emplace_back(own.begin(), own.end());
  }
  return rows;
}

}  // namespace areal::algo
