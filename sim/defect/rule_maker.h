// Short ways to write the rewrite rules of defects down.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

using Fields = std::vector<std::pair<std::string, std::string>>;

inline std::vector<config::FieldValue> field_values(const Fields& fields) {
  std::vector<config::FieldValue> values;
  for (const auto& [name, value] : fields) values.push_back({name, value, 0});
  return values;
}

// An effect, or what a protocol sends or tells, at nodes that fit the pattern.
inline config::EventMatch effect_at(std::string node, std::string kind, const Fields& fields = {}) {
  config::EventMatch match;
  match.node = std::move(node);
  match.kind = std::move(kind);
  match.fields = field_values(fields);
  return match;
}

// An input, or what a protocol receives or is told.
inline config::EventMatch input_at(std::string node, std::string kind, const Fields& fields = {}) {
  config::EventMatch match = effect_at(std::move(node), std::move(kind), fields);
  match.is_input = true;
  return match;
}

inline config::RuleSpec rule_of(std::string id, config::EventMatch match, config::RuleAct act, const Fields& set = {}) {
  config::RuleSpec rule;
  rule.id = std::move(id);
  rule.match = std::move(match);
  rule.act = act;
  rule.set = field_values(set);
  return rule;
}

}  // namespace areal::sim
