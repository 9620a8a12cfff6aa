// CISPO's loss (MiniMax-M1, arXiv 2506.13585, equations 4 and 5) and its gradient.
//
// r = exp(logprobs - proximal), held fixed and clipped to [1 - eps, 1 + eps_higher]; per token -clip(r) A logprob, with
// rejection times the behaviour weight; summed over kept tokens and divided by max(1, tokens of the mask). The gradient
// goes through the explicit logprob alone: clipped tokens keep theirs. Pure.
#pragma once
#include <optional>

#include "engine/algo/policy_tokens.h"
#include "engine/algo/rejection_settings.h"

namespace areal::algo {

struct CispoSettings {
  double clip = 0.2;                  // eps
  std::optional<double> clip_higher;  // Must be set, above 0: the loss is about this bound.
  std::optional<RejectionSettings> rejection;
};

// Replaces `into`. kInvalid: lengths differ; clip not at least 0; clip_higher missing or not above 0; as
// apply_rejection().
Status cispo_loss(const CispoSettings& settings, const PolicyTokens& tokens, Statistics statistics, PolicyLoss& into);

}  // namespace areal::algo
