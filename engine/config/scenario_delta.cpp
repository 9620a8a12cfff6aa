// The conditions of delta updates in a scenario's own words and keys.
#include "engine/config/scenario_delta.h"

#include <fmt/format.h>

#include <utility>

#include "engine/config/delta_environment.h"
#include "engine/config/delta_gate.h"

namespace areal::config {
namespace {

DeltaGateInput gate_input(const Scenario& scenario) {
  const TrainSettings& train = scenario.train;
  return {.enabled = train.delta.enabled,
          .strategy = scenario.rollout.placement,
          .method = train.delta.method,
          .anchor_interval = train.delta.anchor_interval,
          .actor_backend = train.backend,
          .rollout_backend = scenario.rollout.backend,
          .update_mode = train.update_mode,
          .use_lora = train.lora};
}

Conflict conflict_of(const DeltaProblem& problem, const DeltaGateInput& input) {
  switch (problem.rule) {
    case DeltaRule::kStrategy:
      return {"scenario.rollout.placement", fmt::format("delta needs placement separation, got {}", input.strategy)};
    case DeltaRule::kMethod:
      return {"scenario.train.delta.method", fmt::format("delta knows only the method adamw, got '{}'", input.method)};
    case DeltaRule::kAnchorInterval:
      return {"scenario.train.delta.anchor_interval",
              fmt::format("must be >= 0 (0 = no periodic anchor), got {}", input.anchor_interval)};
    case DeltaRule::kActorBackend:
      return {"scenario.train.backend", fmt::format("delta needs a megatron trainer, got '{}'", input.actor_backend)};
    case DeltaRule::kRolloutBackend:
      return {"scenario.rollout.backend", fmt::format("delta needs sglang engines, got '{}'", input.rollout_backend)};
    case DeltaRule::kUpdateMode:
      return {"scenario.train.update", fmt::format("delta needs update awex, got {}", input.update_mode)};
    case DeltaRule::kLora:
      return {"scenario.train.lora", "delta does not support lora"};
    case DeltaRule::kActorVersion:
    case DeltaRule::kRolloutVersion:
      break;
  }
  // A scenario cannot say which generation its trainer and engines are of.
  return {"scenario.train.delta", problem.text};
}

void add_world(const ClusterShape& shape, std::vector<Conflict>& conflicts) {
  const std::uint64_t infer = std::uint64_t{shape.engines} * shape.engine_world;
  const std::uint64_t combined = infer + shape.trainers;
  if (check_delta_world(static_cast<std::int64_t>(infer), shape.trainers, static_cast<std::int64_t>(combined))) return;
  conflicts.push_back({"scenario.train.backend",
                       fmt::format("delta needs a power of two of ranks in all, got inference={}, training={}, "
                                   "combined={}",
                                   infer, shape.trainers, combined)});
}

void add_unsimulated(const Scenario& scenario, std::vector<Conflict>& conflicts) {
  const auto add = [&conflicts](std::string path, std::string_view what, std::string_view instead) {
    conflicts.push_back({std::move(path), fmt::format("{} is not supported by the simulator; use {}", what, instead)});
  };
  const TrainSettings& train = scenario.train;
  if (scenario.rollout.placement != "separation") add("scenario.rollout.placement", "colocation", "separation");
  if (train.update_mode != "awex") add("scenario.train.update", train.update_mode, "awex");
  if (train.lora) add("scenario.train.lora", "lora", "false");
  if (train.delta.minibatches != 1) {
    add("scenario.train.delta.minibatches", fmt::format("minibatches={}", train.delta.minibatches), "1");
  }
}

}  // namespace

std::vector<Conflict> update_conflicts(const Scenario& scenario, const std::optional<ClusterShape>& shape) {
  std::vector<Conflict> conflicts;
  if (!scenario.train.delta.enabled) {
    add_unsimulated(scenario, conflicts);
    return conflicts;
  }
  const DeltaGateInput input = gate_input(scenario);
  for (const DeltaProblem& problem : all_delta_problems(input)) conflicts.push_back(conflict_of(problem, input));
  const DeltaSettings& delta = scenario.train.delta;
  if (!resolve_minibatches(true, {}, delta.minibatches)) {
    conflicts.push_back({"scenario.train.delta.minibatches",
                         fmt::format("delta({}) needs exactly 1 optimizer step per update, got minibatches={}",
                                     delta.method, delta.minibatches)});
  }
  if (shape.has_value()) add_world(*shape, conflicts);
  return conflicts;
}

}  // namespace areal::config
