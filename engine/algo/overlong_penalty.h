// A penalty on answers that come close to the longest allowed one (DAPO, arXiv:2503.14476).
//
// reward += min(-(length - (longest - tokens)) / tokens * factor, 0), with the length of an answer in trained tokens.
// The penalty is rounded to float32; it goes on growing beyond the longest answer. `tokens` of 0 divides by zero: no
// penalty below the longest answer, NaN at it, -inf beyond. Source: spec 4.1.
#pragma once
#include <cstdint>
#include <span>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"

namespace areal::algo {

struct OverlongPenalty {
  std::int64_t tokens = 0;   // Length of the range in which the penalty rises.
  double factor = 1;         // Penalty at the longest answer.
  std::int64_t longest = 0;  // Tokens of the longest answer allowed.
};

// The penalty of an answer, 0 or less unless factor is negative.
float overlong_penalty(const OverlongPenalty& penalty, std::int64_t length);

// Changes one reward for each row. `Reward` is float or double. REQUIRES: a mask entry for each element of the rows.
template <class Reward>
void add_overlong_penalty(const OverlongPenalty& penalty, const Rows& rows, Mask trained, std::span<Reward> rewards) {
  AREAL_CHECK(rewards.size() == rows.size());
  AREAL_CHECK(trained.size() == rows.elements());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto length = static_cast<std::int64_t>(count(rows.of(trained, row)));
    rewards[row] += static_cast<Reward>(overlong_penalty(penalty, length));
  }
}

}  // namespace areal::algo
