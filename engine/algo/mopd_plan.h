// What a run of multi-teacher distillation must do at all, decided from its coefficients before anything starts.
//
// An objective with coefficient 0 needs none of its infrastructure, so that a fault there cannot stop training. Pure
// functions. Source: the execution plan of multi-teacher distillation and the rule of the proximal log-probabilities.
#pragma once
#include <cstdint>

#include "engine/algo/mopd_loss.h"
#include "engine/algo/proximal.h"
#include "engine/base/result.h"

namespace areal::algo {

struct MopdPlanInputs {
  MopdCoefficients coefficients;
  bool reference_and_kl = false;  // A reference model is configured and its KL counts.
  bool critic = false;            // A critic is configured.
  bool m2_filter = false;
  bool rejection = false;
  ProximalRule proximal;
};

struct MopdPlan {
  bool teacher_scoring = false;  // Also the compatibility check, the teacher's fork and its drain.
  bool rl = false;               // Rewards, advantages, the policy gradient.
  bool reference = false;
  bool critic = false;
  bool proximal_logp = false;
  bool operator==(const MopdPlan&) const = default;
};

// kInvalid: a coefficient that is not a finite number of at least 0, or both 0.
Result<MopdPlan> mopd_plan(const MopdPlanInputs& inputs);

// The fewest items that each data-parallel head must score for a pipeline of `pipeline` stages that runs at least
// `micro_batches`: ceil(max(2 * pp if pp > 1 else 1, micro-batches) / pp) * pp * granularity.
// REQUIRES: pipeline > 0, granularity > 0.
std::uint64_t scoring_items_min(std::uint64_t pipeline, std::uint64_t micro_batches, std::uint64_t granularity);

}  // namespace areal::algo
