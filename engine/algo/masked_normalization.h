// A tensor centred and scaled over some of its dimensions, in one pass over x and x².
//
// Over the elements that share the indices of the other dimensions, in double: mean = sum x / n, variance = sum x² / n
// - mean², at least 0, times n / (n - 1) if unbiased; out = (x - mean) / (sqrt(variance) + eps), float32. An element
// that the mask drops counts as 0 in the numerator, and so becomes -mean / (std + eps): multiply by the mask where that
// matters. Nothing kept gives NaN, as does one kept element if unbiased; values far from 0 lose digits: normalization.h
// does not, and is what advantages use. A masked-out value is never read. Source: vectors of masked_normalization. Pure
// function.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/base/result.h"

namespace areal::algo {

struct MaskedNorm {
  std::optional<std::vector<std::size_t>> dims;  // None: all.
  bool unbiased = false;
  double eps = 1e-5;
};

// `x` is row-major of `shape`; no mask keeps all. kInvalid: a dimension that the shape does not have.
// REQUIRES: as many values as the shape says, and mask entries.
Result<std::vector<float>> masked_normalize(const MaskedNorm& norm, std::span<const std::size_t> shape,
                                            std::span<const float> x, std::optional<Mask> mask);

}  // namespace areal::algo
