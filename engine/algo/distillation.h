// The loss with a single teacher, beside or instead of a policy loss.
//
// With weight 0 for the policy loss: -dw * mean of exp(logprobs - old) * (teacher - logprobs), the bracket held fixed.
// Otherwise rlw * policy loss + dw * mean of (logprobs - teacher). Means over the mask, which is narrowed neither by
// rejection nor by their weights; an empty one gives 0. fp32, sums in double. Pure. Source: AReaL's KDRL objective,
// arXiv 2506.02208.
#pragma once
#include <span>

#include "engine/algo/policy_tokens.h"

namespace areal::algo {

struct DistillationWeights {
  double policy = 1.0;
  double teacher = 0.005;
};

// Replaces loss and gradient of `into`, a policy loss over the same tokens, by the joint ones. kInvalid: lengths
// differ.
Status distil(const DistillationWeights& weights, std::span<const float> logprobs, std::span<const float> old,
              std::span<const float> teacher, Mask mask, PolicyLoss& into);

}  // namespace areal::algo
