// The loss of multi-teacher on-policy distillation: weighted reverse Kullback-Leibler, corrected for old rollouts.
//
// For each token, with new = log pi_theta, b = the log-probability that the rollout itself recorded, S and W from
// mopd_target():
//   score = S - W * sg(new)            iw = exp(min(sg(new) - b, ln cap))
//   loss  = - sum over mask of iw * exp(new - sg(new)) * score / max(1, count(normalization))
//   d loss / d new = - iw * score / max(1, count(normalization)), within the mask; 0 elsewhere
// sg stops the gradient, so that new is the only tensor that it reaches. b must be what was recorded before any
// recomputation: with recomputed values the ratio is about 1 and the correction is off without a sign of it.
// Elements outside the mask are not read. Pure functions; [T] float32 or float64 in, sums in double, order of tokens.
// Source: truncated importance sampling of the reverse Kullback-Leibler policy gradient.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/base/result.h"

namespace areal::algo {

// All of one length; Value is float or double. `behaviour_logp`: BehaviourLogprobs of the rollout.
template <class Value>
struct MopdTokens {
  std::span<const Value> new_logp;
  std::span<const Value> behaviour_logp;
  std::span<const Value> teacher_logp_sum;
  std::span<const Value> teacher_weight_sum;
  Mask mask;                          // What survived rejection.
  std::optional<Mask> normalization;  // Before rejection; absent: `mask`. Rejected tokens stay in the denominator.
};

struct MopdLoss {
  double loss = 0;
  std::size_t denominator = 0;            // count(normalization), 0 if nothing is kept.
  std::vector<double> gradient;           // d loss / d new_logp.
  std::vector<double> importance_weight;  // At most `cap`. Like the rest: 0 outside the mask.
  std::vector<double> score;
  std::vector<double> reverse_kl;  // - iw * score, whose masked sum over the denominator is the loss.
};

// kInvalid: tensors of different lengths; a cap that is not finite and above 0; a mask beyond the normalization mask; a
// kept token with a value that is not finite. An empty mask gives 0 and a gradient of zeros.
template <class Value>
Result<MopdLoss> mopd_loss(const MopdTokens<Value>& tokens, double importance_ratio_cap);

extern template Result<MopdLoss> mopd_loss<float>(const MopdTokens<float>&, double);
extern template Result<MopdLoss> mopd_loss<double>(const MopdTokens<double>&, double);

// How much each objective counts.
struct MopdCoefficients {
  double rl = 0;
  double distillation = 0.005;
};

// kInvalid: one that is not a finite number of at least 0, or both 0, so that there is nothing to train on.
Status check_coefficients(const MopdCoefficients& coefficients);

// The loss to step on; gradients are put together by the same call, element by element. An objective with coefficient 0
// is left out, not multiplied by 0: what it is, a NaN even, does not matter.
double compose_mopd(const MopdCoefficients& coefficients, double rl, double distillation);

}  // namespace areal::algo
