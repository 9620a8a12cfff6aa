// From fields at a token's own place to fields at the place of its prediction: one to the left.
//
// Rollouts write a token's log-probability, mask, version and turn at the token; training needs them where the token is
// predicted. The roll is cyclic within a row, so the last element gets the first one's: harmless while the first token
// is a prompt's, which check_prompts makes sure of. Versions roll with the rest: unrolled, the first token of an answer
// is taken for one of the prompt and each boundary between versions is off by one. Pure functions. Source: spec
// 0.2, 4.1.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"
#include "engine/base/result.h"

namespace areal::algo {

// REQUIRES: one value for each element.
template <class Value>
std::vector<Value> rolled_left(const Rows& rows, std::span<const Value> values) {
  AREAL_CHECK(values.size() == rows.elements());
  std::vector<Value> rolled(values.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::span<const Value> own = rows.of(values, row);
    if (own.empty()) continue;
    std::ranges::rotate_copy(own, own.begin() + 1, rolled.begin() + static_cast<std::ptrdiff_t>(rows.begin(row)));
  }
  return rolled;
}

// kInvalid: a row's first token is trained, so it has no prompt. REQUIRES: one mask entry for each element.
Status check_prompts(const Rows& rows, Mask trained);

}  // namespace areal::algo
