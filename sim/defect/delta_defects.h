// Defects in how ranks agree on a delta, what they compare it with, and what counts as delivered.
#pragma once
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

// The last step is undone with the learning rate of the next one.
std::vector<config::RuleSpec> invert_with_next_lr();
// All ranks but the first training rank begin the update before the engines are asked to pause.
std::vector<config::RuleSpec> only_master_waits();
// The gateway takes every answer for a success.
std::vector<config::RuleSpec> bump_version_without_ack();
// A lost engine is no reason for a full update; together with the policies of the same name.
std::vector<config::RuleSpec> no_identity_on_the_wire();
// Nothing is read back from checkpoints.
std::vector<config::RuleSpec> recovery_unsupported();

}  // namespace areal::sim
