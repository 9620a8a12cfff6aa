// Defects in how ranks join groups and what they post there.
#pragma once
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

// The first use of the one key, at the end of the first update, still waits for everybody.
std::vector<config::RuleSpec> constant_barrier_key();
// Senders post the type of their fp32 master weights, while plan and receivers have the one on the wire.
std::vector<config::RuleSpec> plan_from_storage_dtype();
// Senders already report the type of their master weights when they prepare.
std::vector<config::RuleSpec> report_storage_dtype();
// For rooms of at least two engines: their ranks claim the number of their engine.
std::vector<config::RuleSpec> rank_from_engine_index();
// Members of groups never give up by themselves.
std::vector<config::RuleSpec> listener_ignores_timeout();

}  // namespace areal::sim
