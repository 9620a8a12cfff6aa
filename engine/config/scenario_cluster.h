// Which nodes and which model a scenario's layouts make: sizes, and the names that fault and rule patterns are matched
// with.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/layout.h"
#include "engine/config/model.h"
#include "engine/config/scenario.h"

namespace areal::config {

struct ClusterShape {
  ParallelStrategy train;
  ParallelStrategy infer;
  std::uint32_t trainers = 0;      // Train ranks.
  std::uint32_t engines = 0;       // Data-parallel copies on the inference side.
  std::uint32_t engine_world = 0;  // Ranks of one engine: tensor x pipeline.
};

// Refuses what is no backend of its side.
Result<ParallelStrategy> train_strategy(const TrainSettings& train);
Result<ParallelStrategy> rollout_strategy(const RolloutSettings& rollout);
ClusterShape cluster_shape(const ParallelStrategy& train, const ParallelStrategy& infer);
// REQUIRES: read_scenario() accepted this.
ClusterShape cluster_shape(const Scenario& scenario);

// trainer.0, ..., engine.0.rank.0, ..., gateway, controller, router, store, guard.0 (the trainer's host) and one guard
// for the host of each engine: guard.1 for engine 0.
std::vector<std::string> node_names(const ClusterShape& shape);

// The model with its real sizes.
Result<ModelSpec> scenario_model(const ModelSettings& model);

}  // namespace areal::config
