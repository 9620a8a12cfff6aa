// Whether delta updates may be switched on: nine conditions on how trainer and engines are set up, checked before a
// worker is started, and the variables that then tell every worker (spec/transfer.md 1.2).
//
// Nothing is changed unless every condition holds (INV-DELTA-GATE). Messages are the reference's. Pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/environment.h"

namespace areal::config {

// What the conditions look at. The defaults pass once `enabled` is set.
struct DeltaGateInput {
  bool enabled = false;
  std::string strategy = "separation";  // How rollout is placed.
  std::string method = "adamw";
  std::int64_t anchor_interval = 0;  // Committed deltas between two full updates; 0: no periodic one.
  std::string actor_backend = "megatron:d1";
  std::string rollout_backend = "sglang:d1";
  std::string actor_version = "v2";
  std::string rollout_version = "v2";
  std::string update_mode = "awex";
  bool use_lora = false;
};

// In the order in which they are checked.
enum class DeltaRule : std::uint8_t {
  kStrategy,
  kMethod,
  kAnchorInterval,
  kActorBackend,
  kRolloutBackend,
  kActorVersion,
  kRolloutVersion,
  kUpdateMode,
  kLora,
};

struct DeltaProblem {
  DeltaRule rule = DeltaRule::kStrategy;
  std::string text;
};

// Every condition that does not hold, in order; none if delta updates are off.
std::vector<DeltaProblem> all_delta_problems(const DeltaGateInput& input);

// The first of them.
Status check_delta_gate(const DeltaGateInput& input);

// How workers are told. Empty if delta updates are off.
Environment delta_variables(const DeltaGateInput& input);

// The variables of one scheduling spec; nothing where the spec names none.
using SpecVariables = std::optional<Environment>;

// Sets delta_variables() in the driver's environment and in every spec, all or nothing; returns them. A spec without
// variables gets some only if delta updates are on.
Result<Environment> export_delta_environment(const DeltaGateInput& input, Environment& driver,
                                             std::span<SpecVariables> actor_specs,
                                             std::span<SpecVariables> rollout_specs);

// Of the reference's PPO actor.
inline constexpr std::uint32_t kDefaultMinibatches = 4;

// Optimizer steps of a training step. A method that reuses the log-probs of the training pass makes them 1 whatever is
// configured, before delta updates refuse every other number: undoing AdamW covers exactly one step.
Result<std::uint32_t> resolve_minibatches(bool delta_enabled, std::string_view prox_logp_method,
                                          std::uint32_t configured);

}  // namespace areal::config
