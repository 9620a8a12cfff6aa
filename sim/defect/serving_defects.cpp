#include "sim/defect/serving_defects.h"

#include "sim/defect/rule_maker.h"

namespace areal::sim {
namespace {

using config::RuleAct;

// The slot of the training loop in the controller.
constexpr const char* kTrainLoop = "0";

// Makes a request of the controller reach the server of the engine at which the rule matched.
config::RuleSpec emit_to_server(const char* id, config::EventMatch match, const char* kind, Fields fields) {
  config::RuleSpec rule = rule_of(id, std::move(match), RuleAct::kEmit);
  rule.emit_kind = kind;
  rule.emit_slot = "engine_server";
  fields.insert(fields.end(), {{"from", "controller"}, {"kind", "request"}});
  rule.emit_fields = field_values(fields);
  return rule;
}

}  // namespace

std::vector<config::RuleSpec> reread_version_on_record() {
  return {rule_of("reread_version_on_record", input_at("controller", "generate_reply"), RuleAct::kSet,
                  {{"version", "node.version_published.version"}})};
}

std::vector<config::RuleSpec> resume_in_finally() {
  const Fields failed{{"ok", "false"}};
  // Newer than any request of the pause gate so far.
  const Fields newest{{"from_slot", "pause_gate"}, {"request", "8589934591"}};
  return {
      emit_to_server("resume_in_finally", effect_at("engine.*", "write_ended", failed), "continue_engine", newest),
      rule_of("old_weights_are_whole", effect_at("engine.*", "write_ended", failed), RuleAct::kSet, {{"ok", "true"}}),
      rule_of("nothing_is_unproven", effect_at("engine.*", "weights_unproven"), RuleAct::kDrop)};
}

std::vector<config::RuleSpec> version_bump_aborts() {
  // Two askers, so that the second request is no repetition of the first.
  const auto request = [](const char* from_slot) {
    return Fields{{"from_slot", from_slot}, {"request", "field:request"}};
  };
  const config::EventMatch bumped = input_at("engine.*", "set_version");
  Fields abort = request("train_loop");
  abort.emplace_back("mode", "abort_resubmit");
  // The second rule answers to what the first one made.
  return {emit_to_server("version_bump_aborts", bumped, "pause_engine", abort),
          emit_to_server("goes_on",
                         input_at("engine.*", "pause_engine", {{"from_slot", kTrainLoop}, {"mode", "abort_resubmit"}}),
                         "continue_engine", request("rollout_pool"))};
}

}  // namespace areal::sim
