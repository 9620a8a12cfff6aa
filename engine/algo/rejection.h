// Rejection sampling: which tokens a loss may use although another policy sampled them, and with what weight.
//
// d = proximal - old of each token. Tokens: the metric of d must lie within the bounds. Sequences: the ratio aggregates
// log-ratios over the mask (mean, sum or greatest) before exp; the other metrics aggregate themselves; nothing masked
// is read, and a sequence without tokens aggregates to 0. Weights are exp(d), or exp(mean d) for sequences by ratio. A
// d that is not finite counts as 0 in ratios and weights, so that such a token is kept with weight 1; a NaN of another
// metric is out of bounds. Nothing here has a gradient. Pure; fp32 with sums in double. Source: docs of AReaL's
// decoupled objective (arXiv 2505.24298, section 5) and its truncated and masked importance sampling.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rejection_settings.h"
#include "engine/algo/rows.h"

namespace areal::algo {

struct Rejection {
  std::vector<std::uint8_t> kept;  // Never more than the mask; equal to it when clamping.
  std::vector<float> weights;      // 0 exactly where not kept, for finite inputs.
  double filtered_fraction = 0;    // Of the mask: dropped tokens, or those whose weight was clamped.
};

// `settings` are as checked() returned them. `rows` may be null for tokens. kInvalid: lengths differ; sequences without
// rows.
Result<Rejection> apply_rejection(const RejectionSettings& settings, std::span<const float> proximal,
                                  std::span<const float> old, Mask mask, const Rows* rows);

}  // namespace areal::algo
