#include "engine/algo/distillation.h"

#include <algorithm>

#include "engine/algo/exponential.h"

namespace areal::algo {

namespace {

struct Term {
  double loss = 0;
  double slope = 0;
};

Term alone(float logprob, float old, float teacher) {
  const double ratio = static_cast<double>(exp_of<float>(logprob - old));
  const double term = -ratio * static_cast<double>(teacher - logprob);
  return {term, term};  // The ratio is its own derivative.
}

Term beside(float logprob, float teacher) { return {static_cast<double>(logprob - teacher), 1}; }

}  // namespace

Status distil(const DistillationWeights& weights, std::span<const float> logprobs, std::span<const float> old,
              std::span<const float> teacher, Mask mask, PolicyLoss& into) {
  const std::size_t length = logprobs.size();
  if (old.size() != length || teacher.size() != length || mask.size() != length || into.gradient.size() != length) {
    return Error{Errc::kInvalid, "log-probabilities of the policies, mask and gradient differ in length"};
  }
  const bool is_alone = weights.policy == 0;
  const double denominator = static_cast<double>(std::max<std::size_t>(1, count(mask)));
  double sum = 0;
  for (std::size_t at = 0; at < length; ++at) {
    Term term;
    if (mask[at] != 0) term = is_alone ? alone(logprobs[at], old[at], teacher[at]) : beside(logprobs[at], teacher[at]);
    sum += term.loss;
    // A policy loss that is not wanted may be a NaN; 0 times it would be one.
    const double policy = is_alone ? 0 : weights.policy * static_cast<double>(into.gradient[at]);
    into.gradient[at] = static_cast<float>(policy + weights.teacher * (term.slope / denominator));
  }
  const double policy = is_alone ? 0 : weights.policy * static_cast<double>(into.loss);
  into.loss = static_cast<float>(policy + weights.teacher * (sum / denominator));
  return Unit{};
}

}  // namespace areal::algo
