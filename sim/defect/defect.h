// The known defects that a scenario can switch on, by name: what they are, where they were seen, and how they are made.
//
// A defect is either rewrite rules on inputs and effects, or a policy that the world hands to a protocol instead of the
// product's own. `source` is its id in the catalogue of reported failures.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

struct Defect {
  std::string_view name;
  std::string_view source;
  std::string_view sentence;
  std::string_view policy;                             // Empty: made by rules alone.
  std::vector<config::RuleSpec> (*rules)() = nullptr;  // Null: made by a policy alone.
};

// In the order of their names.
std::span<const Defect> all_defects();
// Null if there is no such defect.
const Defect* find_defect(std::string_view name);

// The rules of a defect; none for one that is made by a policy.
std::vector<config::RuleSpec> rules_of(const Defect& defect);

}  // namespace areal::sim
