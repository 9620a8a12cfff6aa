#include "engine/algo/mopd_plan.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::algo {

Result<MopdPlan> mopd_plan(const MopdPlanInputs& inputs) {
  AREAL_TRY(check_coefficients(inputs.coefficients));
  const bool rl = inputs.coefficients.rl > 0;
  const bool distillation = inputs.coefficients.distillation > 0;
  // Without an objective of its own, the proximal policy is there for the filters alone.
  const bool proximal_read = rl || inputs.m2_filter || inputs.rejection;
  return MopdPlan{.teacher_scoring = distillation,
                  .rl = rl,
                  .reference = rl && inputs.reference_and_kl,
                  .critic = rl && inputs.critic,
                  .proximal_logp = proximal_read && inputs.proximal.needs_forward()};
}

std::uint64_t scoring_items_min(std::uint64_t pipeline, std::uint64_t micro_batches, std::uint64_t granularity) {
  AREAL_CHECK(pipeline > 0 && granularity > 0);
  const std::uint64_t wanted = std::max(pipeline > 1 ? 2 * pipeline : 1, micro_batches);
  return (wanted + pipeline - 1) / pipeline * pipeline * granularity;
}

}  // namespace areal::algo
