// SAPO's loss, a soft gate in place of a clip (arXiv 2511.20347), for tokens or sequences, and its gradient.
//
// r = exp(logprobs - old); gate = 4 / tau * sigmoid(tau (r - 1)) with the temperature of gains where A > 0, else of
// losses; per token -gate A; summed over the mask and divided by max(1, tokens of the mask). At r = 1 the gradient is
// -A for every temperature. Sequences: sequence_ratio.h. It takes no proximal policy and no rejection. Pure.
#pragma once
#include "engine/algo/policy_tokens.h"

namespace areal::algo {

struct SapoSettings {
  double tau_of_gain = 1.0;
  double tau_of_loss = 1.05;
  RatioLevel level = RatioLevel::kToken;
};

// Replaces `into`; `tokens.proximal` is not read beyond its length. kInvalid: lengths differ; no old log-probabilities;
// a temperature not above 0, or outside [2^-120, 2^120]; sequences without rows.
Status sapo_loss(const SapoSettings& settings, const PolicyTokens& tokens, Statistics statistics, PolicyLoss& into);

}  // namespace areal::algo
