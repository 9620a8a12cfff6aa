// M2PO: masks the tokens that are furthest off policy until the second moment of the rest is small (arXiv 2510.01161).
//
// m2 = (old - proximal)^2 in fp32 of each token that the mask keeps. The largest are dropped, earlier tokens first
// among equals, until the mean of the others is below the threshold; if it never is, the last in that order alone
// stays. A NaN counts as larger than everything. Without a token the mask stays as it is. Means in double. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/base/result.h"

namespace areal::algo {

// How many of the largest must go. REQUIRES: falling order, NaNs first.
std::size_t m2po_dropped(std::span<const float> falling_m2, double threshold);

// The narrowed mask, which replaces the loss mask before anything is counted. kInvalid: lengths differ; a threshold
// that is a NaN, below which no mean ever is.
Result<std::vector<std::uint8_t>> m2po_mask(std::span<const float> old, std::span<const float> proximal, Mask mask,
                                            double threshold);

}  // namespace areal::algo
