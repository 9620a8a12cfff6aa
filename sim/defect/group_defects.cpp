#include "sim/defect/group_defects.h"

#include "sim/defect/rule_maker.h"

namespace areal::sim {
namespace {

using config::RuleAct;

// The deadline of a member of groups (update_member.h).
constexpr const char* kDeadlineTimer = "1";

}  // namespace

std::vector<config::RuleSpec> constant_barrier_key() {
  // Connecting (version 0) has a meeting of its own and keeps its key.
  return {rule_of("constant_barrier_key", effect_at("", "post_batch", {{"kind", "barrier"}}), RuleAct::kSet,
                  {{"tag", "7"}}),
          rule_of("key_of_connecting", effect_at("", "post_batch", {{"kind", "barrier"}, {"version", "0"}}),
                  RuleAct::kSet, {{"tag", "1"}})};
}

std::vector<config::RuleSpec> plan_from_storage_dtype() {
  return {rule_of("plan_from_storage_dtype", effect_at("", "post_batch", {{"kind", "send"}}), RuleAct::kSet,
                  {{"dtype", "float32"}})};
}

std::vector<config::RuleSpec> report_storage_dtype() {
  return {rule_of("report_storage_dtype", effect_at("trainer.*", "prepared"), RuleAct::kSet, {{"dtype", "float32"}})};
}

std::vector<config::RuleSpec> rank_from_engine_index() {
  return {rule_of("rank_from_engine_index", effect_at("engine.0.*", "join_group"), RuleAct::kSet, {{"rank", "0"}}),
          rule_of("rank_from_engine_index", effect_at("engine.1.*", "join_group"), RuleAct::kSet, {{"rank", "1"}})};
}

std::vector<config::RuleSpec> listener_ignores_timeout() {
  std::vector<config::RuleSpec> rules;
  for (const char* nodes : {"engine.*", "trainer.*"}) {
    rules.push_back(rule_of("listener_ignores_timeout", effect_at(nodes, "arm_timer", {{"timer", kDeadlineTimer}}),
                            RuleAct::kDrop));
  }
  return rules;
}

}  // namespace areal::sim
