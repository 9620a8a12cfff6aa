#include "sim/fault/rule.h"

namespace areal::sim {
namespace {

using config::RuleAct;

constexpr std::string_view kOutcome = "outcome";

// The kinds of record that events of a kind come in: itself, or its carriers.
std::vector<KindId> record_kinds(const EventKind& kind) {
  const std::vector<KindId> carriers = carriers_of(kind.info->id, kind.is_input);
  return carriers.empty() ? std::vector<KindId>{kind.info->id} : carriers;
}

bool sets_outcome(const std::vector<config::FieldValue>& values) {
  return std::ranges::find(values, kOutcome, &config::FieldValue::name) != values.end();
}

Result<Unit> compile_made(const config::RuleSpec& spec, const RuleScope& scope, bool is_answer, Rule& rule) {
  for (const KindId record : record_kinds(rule.match.kind())) {
    auto made = is_answer ? RecordTemplate::answering(spec, rule.match.kind(), record, scope)
                          : RecordTemplate::emitted(spec, rule.match.kind(), record, scope);
    if (!made) return made.error();
    rule.made.push_back(std::move(*made));
  }
  return Unit{};
}

Result<Unit> compile_sets(const config::RuleSpec& spec, const RuleScope& scope, Rule& rule) {
  for (const config::FieldValue& value : spec.set) {
    auto assignment = compile_assignment(value, rule.match.kind(), rule.match.kind(), scope);
    if (!assignment) return assignment.error();
    rule.sets.push_back(std::move(*assignment));
  }
  return Unit{};
}

// What has an outcome gets a bad one; what has none is answered with one.
Result<Unit> compile_fail(config::RuleSpec spec, const RuleScope& scope, Rule& rule) {
  if (!sets_outcome(spec.set)) spec.set.push_back({std::string(kOutcome), "failed", spec.line});
  rule.answers = !FieldRef::find(scope.kinds, rule.match.kind(), kOutcome, spec.line).has_value();
  return rule.answers ? compile_made(spec, scope, true, rule) : compile_sets(spec, scope, rule);
}

Result<Unit> compile_target(const config::RuleSpec& spec, const RuleScope& scope, RuleTarget& target) {
  target.same_node = spec.emit_node.empty();
  auto nodes = NodeSet::find(scope.directory, spec.emit_node, spec.line);
  if (!nodes) return nodes.error();
  target.nodes = std::move(*nodes);
  if (spec.emit_slot.empty()) return Unit{};
  target.slots.resize(scope.directory.size(), SlotId{UINT64_MAX});
  bool found = false;
  for (const NodeId node : target.nodes.nodes()) {
    const std::vector<std::string>& slots = scope.directory[node.value].slots;
    const auto slot = std::ranges::find(slots, spec.emit_slot);
    if (slot == slots.end()) continue;
    target.slots[node.value] = {static_cast<std::uint64_t>(slot - slots.begin())};
    found = true;
  }
  if (found) return Unit{};
  return error_at(spec.line, "none of the nodes has a protocol called '" + spec.emit_slot + "'");
}

Result<Unit> compile_act(const config::RuleSpec& spec, const RuleScope& scope, Rule& rule) {
  switch (spec.act) {
    case RuleAct::kDrop:
    case RuleAct::kRepeat:
    case RuleAct::kSwap:
      return Unit{};
    case RuleAct::kDelay:
      if (spec.delay.ns <= 0) return error_at(spec.line, "a delay needs a time above 0");
      return Unit{};
    case RuleAct::kSet:
      if (spec.set.empty()) return error_at(spec.line, "a rule that sets needs fields and values");
      return compile_sets(spec, scope, rule);
    case RuleAct::kFail:
      return compile_fail(spec, scope, rule);
    case RuleAct::kComplete:
      return compile_made(spec, scope, true, rule);
    case RuleAct::kEmit:
      AREAL_TRY(compile_target(spec, scope, rule.target));
      return compile_made(spec, scope, false, rule);
  }
  return Unit{};
}

}  // namespace

Result<Rule> compile_rule(const config::RuleSpec& spec, const RuleScope& scope) {
  auto match = EventMatcher::compile(spec.match, scope.kinds, scope.directory);
  if (!match) return match.error();
  if (class_of(match->kind().info->id) == KindClass::kFault) {
    return error_at(spec.line, "a rule changes inputs and effects, and " + spec.match.kind + " is neither");
  }
  Rule rule{.id = spec.id,
            .act = spec.act,
            .match = std::move(*match),
            .delay = spec.delay,
            .sets = {},
            .made = {},
            .target = {}};
  AREAL_TRY(compile_act(spec, scope, rule));
  return rule;
}

}  // namespace areal::sim
