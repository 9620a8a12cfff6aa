// What an update reports of its loss: numbers of tokens, summaries over tokens, and scalars. Names are AReaL's.
//
// Ratios and losses are summarised over the mask that the loss counted, before rejection narrowed it, so that with
// ratios of tokens a proximal policy equal to the trained one reads as ratio 1 for every filter; sequences write a
// ratio of 0 where a token is not kept. Weights of behaviour are summarised over what was kept. A summary over no token
// is left out, so that nothing here divides by 0. Log-probabilities in nats. Pure.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/algo/policy_tokens.h"
#include "engine/algo/proximal.h"
#include "engine/algo/version_staleness.h"

namespace areal::algo {

struct TokenSummary {
  std::string name;
  Summary summary;
  std::size_t tokens = 0;  // Over how many.
};

struct NamedNumber {
  std::string name;
  double value = 0;
};

struct LossStatistics {
  std::vector<NamedNumber> counts;  // n_tokens, n_valid_tokens, clipped_tokens, …
  std::vector<TokenSummary> summaries;
  std::vector<NamedNumber> scalars;
};

// Adds a summary of `values` over `mask`, unless that keeps nothing. REQUIRES: spans of one length.
void add_summary(std::string name, std::span<const float> values, Mask mask, LossStatistics& into);

// Of a policy loss with filled statistics; `entropy` may be empty. REQUIRES: `loss` is of these tokens.
LossStatistics loss_statistics(const PolicyTokens& tokens, const PolicyLoss& loss, std::span<const float> entropy);

// How near the approximations of the proximal policy come: METHOD/approx_logp, METHOD/behave_imp_weight and
// METHOD/importance_weight; with the truth also METHOD/abs_error, rel_error, squared_error and both weights' abs_error.
// The method says which: kRecompute the truth alone (recompute/prox_logp), kLoglinear its own, kMetrics all three.
void add_approximation_statistics(ProximalMethod method, const ProximalSources& sources, Mask mask,
                                  LossStatistics& into);

// sample_staleness_{theta,proximal}_{avg,max,min}, v_theta, v_proximal and n_valid_generated_tokens; nothing where no
// kept token has a version.
void add_staleness(std::span<const std::int64_t> versions, Mask kept, std::int64_t current_version,
                   LossStatistics& into);

}  // namespace areal::algo
