// Turns the name of a defect into what makes it: rules for the hook, or policies for the room.
#pragma once
#include <vector>

#include "engine/base/result.h"
#include "sim/defect/defect.h"
#include "sim/world/room.h"

namespace areal::sim {

struct DefectParts {
  std::vector<config::RuleSpec> rules;
  RoomPolicies policies;
};

// An error for an unknown name, with the nearest known one.
Result<DefectParts> parts_of_defect(std::string_view name);

}  // namespace areal::sim
