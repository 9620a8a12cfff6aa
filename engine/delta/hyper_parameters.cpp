// Fills in an optimizer's defaults.
#include "engine/delta/hyper_parameters.h"

namespace areal::delta {

std::optional<AdamWSettings> completed_step_settings(const ParameterGroup& group) {
  if (!group.recorded_rate.has_value()) return std::nullopt;
  const std::pair<double, double> betas = group.betas.value_or(std::pair(0.9, 0.999));
  return AdamWSettings{.learning_rate = *group.recorded_rate,
                       .weight_decay = group.weight_decay.value_or(0.0),
                       .beta1 = group.bias_correction ? betas.first : 0.0,
                       .beta2 = group.bias_correction ? betas.second : 0.0,
                       .epsilon = group.epsilon.value_or(1e-8)};
}

}  // namespace areal::delta
