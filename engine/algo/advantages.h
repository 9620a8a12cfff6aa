// From rewards and log-probabilities of a batch to advantages and returns: the whole preparation of a training step.
//
// In this order (spec 4.1), with len the attended tokens of a row and rolled fields as in next_token.h:
//    1  overlong penalty on rewards                        (overlong_penalty.h)
//    2  r = clip((reward + bias) * scaling, -clip, clip)
//    3  reward normalization                               (normalization.h)
//    4  mask, turn ids, behaviour log-probabilities rolled; the last turn id of a row becomes -1
//    5  old = recomputed log-probabilities where the loss is not decoupled and they were recomputed, else behaviour;
//       behaviour comes out too, for it is what a ratio to the rollout policy needs
//    6  kl = -kl_ctl * estimate(old, reference), clamped; 0 where not trained
//    7  outcome: r at element max(len - 2, 0); 0 with mask_no_eos_with_zero and a row that is cut off; kl at element
//       len - 1 becomes 0
//    8  values (0 if none) and λ (gae_lambda.h); advantages (gae.h) of kl + outcome by token. By turn of the outcome
//       alone, and kl is added to the advantages afterwards: it stays local to its token and out of the returns
//    9  advantage normalization
// What is not trained never enters: its log-probabilities, values and references may be anything.
//
// A cut off row bootstraps from its value at element len - 1. Which rows are cut off is to come from why generation
// stopped. The reference takes any row that fills the batch's width for one, so that the answer depends on what else is
// in the batch; NoEos::kWidth is that. Without a reference policy a kl_ctl other than 0 is refused: the reference's
// answer, a divergence from log-probabilities of 0, is a bonus on unlikely tokens; kl_without_reference is that.
// Statistics of the batch are those of this call; with several ranks leave that normalization out and use normalize().
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/algo/gae_lambda.h"
#include "engine/algo/kl_estimator.h"
#include "engine/algo/masked.h"
#include "engine/algo/normalization.h"
#include "engine/algo/overlong_penalty.h"
#include "engine/algo/rows.h"
#include "engine/algo/time_steps.h"
#include "engine/base/result.h"

namespace areal::algo {

enum class NoEos : std::uint8_t { kStopReason, kWidth };

struct AdvantageConfig {
  std::optional<OverlongPenalty> overlong;
  double reward_bias = 0;
  double reward_scaling = 1;
  double reward_clip = 20;
  std::optional<NormConfig> reward_norm;
  double kl_ctl = 0.1;
  KlEstimator kl_estimator = KlEstimator::kK1;
  bool kl_without_reference = false;
  bool is_decoupled = false;
  bool is_recomputed = false;  // `proximal` is to replace behaviour log-probabilities if the loss is not decoupled.
  NoEos no_eos = NoEos::kStopReason;
  bool mask_no_eos_with_zero = false;
  double discount = 1;
  LambdaRule lambda;
  TimeStep time_step = TimeStep::kToken;
  std::optional<NormConfig> adv_norm;
};

// One entry for each element of `rows` unless said otherwise. Fields of the rollout stand at their token; those of
// training passes (proximal, reference, values) at the prediction.
struct AdvantageInput {
  const Rows& rows;
  std::span<const float> rewards;  // One for each row.
  Mask attention;
  Mask trained;
  std::span<const float> behaviour;  // Log-probabilities.
  std::optional<std::span<const float>> proximal;
  std::optional<std::span<const float>> reference;
  std::optional<std::span<const float>> values;
  std::optional<std::span<const std::int32_t>> turn_ids;
  std::optional<Mask> is_cut_off;                            // One for each row: generation stopped for lack of room.
  std::optional<std::span<const std::int64_t>> group_sizes;  // Rows of each task's result.
};

// One entry for each element unless said otherwise, at the prediction.
struct Advantages {
  std::vector<float> advantages;
  std::vector<float> returns;
  std::vector<float> kl_rewards;
  std::vector<float> total_rewards;  // kl + outcome, by turn too.
  std::vector<std::uint8_t> trained;
  std::vector<float> old;                // 0 where not trained.
  std::vector<float> behaviour;          // 0 where not trained.
  std::vector<float> rewards;            // One for each row: after step 3.
  std::vector<std::uint8_t> is_cut_off;  // One for each row.
};

// kInvalid: a row without elements; a first token that is trained; kl_ctl other than 0 without a reference; recomputed
// without `proximal`; kStopReason without `is_cut_off`; turns without turn ids; λ, discount, bias, scaling or kl_ctl
// that is not finite; a reward_clip that is not at least 0; what lambdas(), normalize() and gae_by_turn() refuse.
// REQUIRES: all sizes fit.
Result<Advantages> prepare_advantages(const AdvantageConfig& config, const AdvantageInput& input);

}  // namespace areal::algo
