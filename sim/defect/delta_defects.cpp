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
  // Ranks save what a step made before the loop asks engines to pause: the update begins as soon as one has saved it,
  // and the first training rank enters when the engines have paused.
  config::RuleSpec begins = rule_of("only_master_waits", input_at("controller", "checkpoint_saved"), RuleAct::kEmit);
  begins.emit_kind = "update_request";
  begins.emit_node = "gateway";
  begins.emit_slot = "gateway";
  begins.emit_fields = field_values({{"from", "controller"},
                                     {"from_slot", "rollout_pool"},
                                     {"kind", "request"},
                                     {"request", "field:request"},
                                     {"version", "field:version"},
                                     {"training_epoch", "field:training_epoch"}});
  config::RuleSpec waits = rule_of("master_waits", input_at("trainer.0", "execute"), RuleAct::kDelay);
  waits.delay = kMasterWaits;
  return {begins, waits};
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
