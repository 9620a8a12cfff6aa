// Sizes and names of a scenario's cluster.
#include "engine/config/scenario_cluster.h"

#include <fmt/format.h>

#include <utility>

namespace areal::config {
namespace {

Result<ParallelStrategy> strategy_of(const std::string& backend, bool wants_inference) {
  Result<ModelAllocation> allocation = parse_allocation(backend);
  if (!allocation) return std::move(allocation).error();
  if (is_inference(allocation->backend) != wants_inference) {
    return Error{Errc::kInvalid,
                 fmt::format("'{}' is no backend for {}; use {}", backend, wants_inference ? "rollout" : "training",
                             wants_inference ? "sglang or vllm" : "megatron or fsdp")};
  }
  return allocation->parallel;
}

}  // namespace

Result<ParallelStrategy> train_strategy(const TrainSettings& train) { return strategy_of(train.backend, false); }
Result<ParallelStrategy> rollout_strategy(const RolloutSettings& rollout) { return strategy_of(rollout.backend, true); }

ClusterShape cluster_shape(const ParallelStrategy& train, const ParallelStrategy& infer) {
  return {.train = train,
          .infer = infer,
          .trainers = train.world_size(),
          .engines = infer.dp,
          .engine_world = infer.tp * infer.pp};
}

ClusterShape cluster_shape(const Scenario& scenario) {
  return cluster_shape(train_strategy(scenario.train).value(), rollout_strategy(scenario.rollout).value());
}

std::vector<std::string> node_names(const ClusterShape& shape) {
  std::vector<std::string> names;
  for (std::uint32_t rank = 0; rank < shape.trainers; ++rank) names.push_back(fmt::format("trainer.{}", rank));
  for (std::uint32_t engine = 0; engine < shape.engines; ++engine) {
    for (std::uint32_t rank = 0; rank < shape.engine_world; ++rank) {
      names.push_back(fmt::format("engine.{}.rank.{}", engine, rank));
    }
  }
  for (const std::string_view name : {"gateway", "controller", "router", "store"}) names.emplace_back(name);
  for (std::uint32_t host = 0; host <= shape.engines; ++host) names.push_back(fmt::format("guard.{}", host));
  return names;
}

Result<ModelSpec> scenario_model(const ModelSettings& model) {
  if (model.kind == "qwen3_30b_a3b") return model_by_name("qwen3-30b-a3b");
  if (model.kind == "qwen3_0_6b") return model_by_name("qwen3-0.6b");
  return model_by_name(model.kind);
}

}  // namespace areal::config
