// Defects in how ranks agree on a delta, what they compare it with, and what counts as delivered.
#pragma once
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

// The last step is undone with the learning rate of the next one.
std::vector<config::RuleSpec> invert_with_next_lr();

}  // namespace areal::sim
