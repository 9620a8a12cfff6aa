// What an AdamW step was made with, for undoing it (spec/transfer.md 1.4, INV-DELTA-LR).
//
// The learning rate is the recorded one of the completed step. The group's present rate is none of the business here: a
// scheduler has moved it on by then. Pure function.
#pragma once
#include <optional>
#include <utility>

#include "engine/delta/adamw.h"

namespace areal::delta {

// A parameter group of an optimizer; what it leaves out has the optimizer's default.
struct ParameterGroup {
  std::optional<double> recorded_rate;  // Stored just before the step.
  std::optional<double> present_rate;
  std::optional<double> weight_decay;
  std::optional<std::pair<double, double>> betas;
  std::optional<double> epsilon;
  bool bias_correction = true;
};

// Nothing if no rate was recorded: then nothing can be undone and the update must be full. Without bias correction both
// betas are 0, so that 1 - beta^t is 1.
std::optional<AdamWSettings> completed_step_settings(const ParameterGroup& group);

}  // namespace areal::delta
