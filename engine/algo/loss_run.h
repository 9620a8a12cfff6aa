// How the policy losses call the kernels: one denominator, one narrowing by rejection, one filling of statistics.
//
// Not for callers of the losses.
#pragma once
#include <algorithm>
#include <optional>

#include "engine/algo/loss_kernel.h"
#include "engine/algo/policy_tokens.h"
#include "engine/algo/rejection.h"

namespace areal::algo {

inline float* sized(std::vector<float>& values, std::size_t length) {
  values.resize(length);
  return values.data();
}

inline std::uint8_t* sized(std::vector<std::uint8_t>& flags, std::size_t length) {
  flags.resize(length);
  return flags.data();
}

// kInvalid: how far a ratio or a value may move is no number of at least 0. A NaN would be passed by every comparison,
// so that nothing would be clipped.
Status check_clip(double clip);

// max(1, tokens of the mask).
inline double denominator_of(Mask mask) {
  return static_cast<double>(std::max<std::size_t>(1, loss_kernels().count(mask.data(), mask.size())));
}

// Where a kernel writes, with memory for `length` tokens. What this loss does not fill is emptied: statistics that are
// left out, gates without `has_gates`, behaviour. Flags begin as 0, for not every loss writes both.
TokenResults results_of(PolicyLoss& into, std::size_t length, Statistics statistics, bool has_gates);

// proximal - old where kept, and what rejection decided.
BehaviourStatistics behaviour_statistics(const PolicyTokens& tokens, Rejection rejection);

// The rejection that the settings ask for, if any. kInvalid: as apply_rejection(), or no old log-probabilities.
Result<std::optional<Rejection>> rejection_of(const std::optional<RejectionSettings>& settings,
                                              const PolicyTokens& tokens);

// Kernel arguments: `base` is what the ratio is taken to; `rejection` may be null.
TokenArrays arrays_of(const PolicyTokens& tokens, std::span<const float> base, const Rejection* rejection,
                      double denominator);

}  // namespace areal::algo
