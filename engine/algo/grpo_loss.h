// The whole loss of an actor's micro-batch: proximal policy, M2PO, one of the surrogates, a teacher, and statistics.
//
// In this order: the proximal log-probabilities are resolved (proximal.h); M2PO narrows the mask (m2po.h), and with it
// the divisor; PPO, SAPO or CISPO gives loss and gradient, PPO and CISPO with rejection sampling, which narrows the sum
// but not the divisor; a single teacher is joined (distillation.h). Log-probabilities, advantages, masks and versions
// are aligned to the position that predicts. Pure; the divisors are this micro-batch's own: loss_scale.h joins
// micro-batches.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/algo/distillation.h"
#include "engine/algo/loss_statistics.h"
#include "engine/algo/policy_tokens.h"
#include "engine/algo/proximal.h"
#include "engine/algo/rejection_settings.h"

namespace areal::algo {

struct GrpoSettings {
  double clip = 0.2;
  std::optional<double> clip_higher;
  std::optional<double> dual_clip;  // PPO alone.
  RatioLevel level = RatioLevel::kToken;
  std::optional<RejectionSettings> rejection;  // As checked() returned them; SAPO ignores them.
  std::optional<double> m2_threshold;
  ProximalMethod method = ProximalMethod::kRecompute;
  std::optional<std::int64_t> current_version;
  bool is_decoupled = false;
  bool uses_sapo = false;
  bool uses_cispo = false;
  double tau_of_gain = 1.0;
  double tau_of_loss = 1.05;
};

// kInvalid: SAPO with CISPO; CISPO with sequences, or without an upper clip above 0; SAPO with a decoupled loss.
Status check_grpo(const GrpoSettings& settings);

struct GrpoTokens {
  std::span<const float> logprobs;
  std::span<const float> old;
  std::span<const float> advantages;
  Mask mask;
  const Rows* rows = nullptr;
  std::optional<std::span<const float>> recomputed;  // Proximal log-probabilities of a forward pass before the update.
  std::optional<std::span<const std::int64_t>> versions;
  std::optional<std::span<const float>> teacher;
  DistillationWeights weights;
  std::span<const float> entropy;  // For statistics; may be empty.
};

struct GrpoLoss {
  PolicyLoss joint;
  std::vector<float> proximal;
  std::vector<std::uint8_t> mask;  // After M2PO.
  LossStatistics statistics;
};

// kInvalid: as check_grpo() and what it calls; lengths differ. kCorrupt: as resolve_proximal().
Result<GrpoLoss> grpo_loss(const GrpoSettings& settings, const GrpoTokens& tokens);

}  // namespace areal::algo
