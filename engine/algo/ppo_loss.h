// PPO's clipped loss with a decoupled proximal policy, for tokens or sequences, and its gradient.
//
// r = exp(logprobs - proximal); per token l = max(-A r, -A clip(r, 1 - eps, 1 + eps_higher)), with dual clip
// min(l, c |A|); with rejection l times the behaviour weight. loss = sum of l over kept tokens / max(1, tokens of the
// mask); rejection does not change the divisor. Sequences: sequence_ratio.h over the kept tokens. Sources: PPO, arXiv
// 1707.06347; dual clip, 1912.09729; decoupling, 2110.00641 and 2505.24298; GSPO, 2507.18071. Pure.
#pragma once
#include <optional>

#include "engine/algo/policy_tokens.h"
#include "engine/algo/rejection_settings.h"

namespace areal::algo {

struct PpoSettings {
  double clip = 0.2;                  // eps
  std::optional<double> clip_higher;  // None: as eps.
  std::optional<double> dual_clip;    // c
  RatioLevel level = RatioLevel::kToken;
  std::optional<RejectionSettings> rejection;  // As checked() returned them.
};

// Replaces `into`, whose memory is reused. kInvalid: lengths differ; a clip that is not at least 0; dual clip at
// or below 1; sequences without rows; as apply_rejection().
Status ppo_actor_loss(const PpoSettings& settings, const PolicyTokens& tokens, Statistics statistics, PolicyLoss& into);

}  // namespace areal::algo
