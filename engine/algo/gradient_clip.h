// Clipping of gradients by their global L2 norm.
//
// norm = sqrt(sum of squares over all gradients of all ranks); each gradient is multiplied by min(1, max / (norm +
// 1e-6)). A norm that is not finite means no step at all: gradients are zeroed, moments and weights stay. The learning
// rate and the version still advance; what is published then are the same weights. Squares are added up in double, in
// order, and the sums of shards are added up in the order of the shards. Pure functions on float32. Source: torch's
// clip_grad_norm_.
#pragma once
#include <span>

namespace areal::algo {

// Of one shard's gradients.
double square_sum(std::span<const float> gradients);

struct ClipDecision {
  double norm = 0;
  double coefficient = 0;
  bool step = false;  // Whether the optimizer takes this update.
};

// From the square sums of all shards. REQUIRES: max_norm > 0.
ClipDecision decide_clip(std::span<const double> square_sums, double max_norm);

// Does to one shard's gradients what was decided.
void apply_clip(const ClipDecision& decision, std::span<float> gradients);

}  // namespace areal::algo
