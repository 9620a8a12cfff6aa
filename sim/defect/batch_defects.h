// Defects in how batches of group operations are described.
#pragma once
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

std::vector<config::RuleSpec> constant_barrier_key();
std::vector<config::RuleSpec> plan_from_storage_dtype();

}  // namespace areal::sim
