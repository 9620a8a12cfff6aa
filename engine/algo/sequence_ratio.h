// One ratio and one advantage for a whole sequence (GSPO, arXiv 2507.18071).
//
// The ratio is exp of the mean log-ratio of the tokens that the mask keeps, the advantage is their mean. A sequence
// that keeps none has log-ratio 0 and advantage 0, and no token to use them. Pure; means in double.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"

namespace areal::algo {

struct SequenceRatio {
  float ratio = 1;
  float advantage = 0;
  std::size_t kept = 0;
};

// One entry a row. REQUIRES: spans of rows.elements().
std::vector<SequenceRatio> sequence_ratios(const Rows& rows, std::span<const float> logprobs,
                                           std::span<const float> base, std::span<const float> advantages, Mask mask);

}  // namespace areal::algo
