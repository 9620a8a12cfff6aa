// One rewrite rule of a scenario, compiled: what it looks for, and what it does with it.
#pragma once
#include <string>
#include <vector>

#include "sim/fault/event_matcher.h"
#include "sim/fault/record_template.h"

namespace areal::sim {

// Where an emitted event happens. `slots` is by NodeId; empty: the slot that matched.
struct RuleTarget {
  bool same_node = true;
  NodeSet nodes;
  std::vector<SlotId> slots;
};

struct Rule {
  std::string id;
  config::RuleAct act = config::RuleAct::kDrop;
  EventMatcher match;
  Duration delay;
  bool answers = false;  // kFail of an effect that has no outcome: it is answered as failed.
  std::vector<Assignment> sets;
  std::vector<RecordTemplate> made;  // One for each kind of record that a matched event may have.
  RuleTarget target;
};

// Errors name the line and what would be right.
Result<Rule> compile_rule(const config::RuleSpec& spec, const RuleScope& scope);

// Calls visit(kind) for every kind of note that the rule reads as a probe.
template <class Visit>
void for_each_probe(const Rule& rule, Visit&& visit) {
  const auto look = [&visit](const std::vector<Assignment>& assignments) {
    for (const Assignment& assignment : assignments) {
      if (assignment.source.probe() != 0) visit(assignment.source.probe());
    }
  };
  look(rule.sets);
  for (const RecordTemplate& made : rule.made) look(made.assignments());
}

}  // namespace areal::sim
