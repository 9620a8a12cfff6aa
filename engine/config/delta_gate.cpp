// The nine conditions, in the reference's order and words.
#include "engine/config/delta_gate.h"

#include <fmt/format.h>

#include <utility>

namespace areal::config {
namespace {

// "megatron" of "Megatron:d2t2".
std::string backend_of(std::string_view text) { return lower_case(text.substr(0, text.find(':'))); }

std::string requires_text(std::string_view what, std::string_view wanted, std::string_view got) {
  return fmt::format("delta weight transfer currently requires {}='{}'; got '{}'", what, wanted, got);
}

}  // namespace

std::vector<DeltaProblem> all_delta_problems(const DeltaGateInput& input) {
  std::vector<DeltaProblem> problems;
  if (!input.enabled) return problems;
  const auto need = [&problems](bool holds, DeltaRule rule, std::string text) {
    if (!holds) problems.push_back({rule, std::move(text)});
  };
  need(input.strategy == "separation", DeltaRule::kStrategy,
       fmt::format("actor.enable_delta_weight_update=true is currently supported only with rollout scheduling strategy "
                   "'separation', got '{}'",
                   input.strategy));
  need(input.method == "adamw", DeltaRule::kMethod, "actor.weight_update_delta_method must be 'adamw'");
  need(input.anchor_interval >= 0, DeltaRule::kAnchorInterval,
       "actor.weight_update_anchor_interval must be non-negative");
  need(backend_of(input.actor_backend) == "megatron", DeltaRule::kActorBackend,
       requires_text("actor.backend", "megatron:*", input.actor_backend));
  need(backend_of(input.rollout_backend) == "sglang", DeltaRule::kRolloutBackend,
       requires_text("rollout.backend", "sglang:*", input.rollout_backend));
  need(input.actor_version == "v2", DeltaRule::kActorVersion,
       requires_text("actor._version", "v2", input.actor_version));
  need(input.rollout_version == "v2", DeltaRule::kRolloutVersion,
       requires_text("rollout._version", "v2", input.rollout_version));
  need(input.update_mode == "awex", DeltaRule::kUpdateMode,
       requires_text("actor.weight_update_mode", "awex", input.update_mode));
  need(!input.use_lora, DeltaRule::kLora, "delta weight transfer does not support actor.use_lora=True");
  return problems;
}

Status check_delta_gate(const DeltaGateInput& input) {
  std::vector<DeltaProblem> problems = all_delta_problems(input);
  if (problems.empty()) return Unit{};
  return Error{Errc::kInvalid, std::move(problems.front().text)};
}

Environment delta_variables(const DeltaGateInput& input) {
  Environment variables;
  if (!input.enabled) return variables;
  variables.set("DTE_SEPARATION_WEIGHT_UPDATE", "1");
  variables.set("DTE_DELTA_TRANSFER", "1");
  variables.set("DTE_DELTA_ANCHOR_INTERVAL", std::to_string(input.anchor_interval));
  variables.set("DTE_STREAMING_RECONSTRUCT", "1");
  return variables;
}

Result<Environment> export_delta_environment(const DeltaGateInput& input, Environment& driver,
                                             std::span<SpecVariables> actor_specs,
                                             std::span<SpecVariables> rollout_specs) {
  AREAL_TRY(check_delta_gate(input));
  Environment exported = delta_variables(input);
  if (!input.enabled) return exported;
  const auto set_all = [&exported](Environment& target) {
    for (const Variable& variable : exported.variables()) target.set(variable.name, variable.value);
  };
  set_all(driver);
  for (const std::span<SpecVariables> specs : {actor_specs, rollout_specs}) {
    for (SpecVariables& spec : specs) {
      if (!spec.has_value()) spec.emplace();
      set_all(*spec);
    }
  }
  return exported;
}

Result<std::uint32_t> resolve_minibatches(bool delta_enabled, std::string_view prox_logp_method,
                                          std::uint32_t configured) {
  const std::uint32_t minibatches = prox_logp_method == "reuse_train_logp" ? 1 : configured;
  if (!delta_enabled || minibatches == 1) return minibatches;
  return Error{Errc::kInvalid,
               fmt::format("actor.enable_delta_weight_update=true currently requires ppo_n_minibatches=1 because "
                           "separation AdamW inversion supports exactly one optimizer step between weight updates; got "
                           "ppo_n_minibatches={}",
                           minibatches)};
}

}  // namespace areal::config
