#include "sim/defect/delta_defects.h"

#include "sim/defect/rule_maker.h"

namespace areal::sim {
namespace {

using config::RuleAct;

// Longer than an engine takes to pause.
constexpr Duration kMasterWaits = 5_s;

}  // namespace

std::vector<config::RuleSpec> invert_with_next_lr() {
  return {rule_of("invert_with_next_lr", effect_at("trainer.*", "step_made"), RuleAct::kSet,
                  {{"rate_used", "field:rate_next"}})};
}

std::vector<config::RuleSpec> only_master_waits() {
  // The loop is told at once that all engines paused, and the first training rank enters when they have.
  config::RuleSpec goes_on = rule_of("only_master_waits", input_at("controller", "pause_all"), RuleAct::kEmit);
  goes_on.emit_kind = "all_paused";
  goes_on.emit_slot = "train_loop";
  goes_on.emit_fields = field_values({{"from_slot", "pause_gate"}, {"outcome", "ok"}});
  config::RuleSpec waits = rule_of("master_waits", input_at("trainer.0", "execute"), RuleAct::kDelay);
  waits.delay = kMasterWaits;
  return {goes_on, waits};
}

std::vector<config::RuleSpec> bump_version_without_ack() {
  std::vector<config::RuleSpec> rules;
  for (const char* answer : {"executed", "committed"}) {
    rules.push_back(
        rule_of("bump_version_without_ack", input_at("gateway", answer), RuleAct::kSet, {{"outcome", "ok"}}));
  }
  return rules;
}

std::vector<config::RuleSpec> no_identity_on_the_wire() {
  // Nor does the gateway take a loss for a reason.
  return {rule_of("no_identity_on_the_wire", input_at("", "execute", {{"reason", "peer_lost"}}), RuleAct::kSet,
                  {{"mode", "delta"}, {"reason", "none"}})};
}

std::vector<config::RuleSpec> recovery_unsupported() {
  return {rule_of("recovery_unsupported", effect_at("trainer.*", "start_compute", {{"what", "load_checkpoint"}}),
                  RuleAct::kFail)};
}

}  // namespace areal::sim
