// The machine room as it was built from a scenario: everything that does not change while it is simulated.
//
// Immutable, shared by all copies of a world and by all seeds of a range.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/node/node.h"
#include "engine/node/room_plan.h"
#include "sim/check/judge_setup.h"
#include "sim/fault/node_directory.h"

namespace areal::sim {

using node::RoomNode;
using node::RoomPolicies;

struct Room : node::RoomPlan {
  KindTable kinds;  // Of the seam and of faults.
  NodeDirectory directory;
  SetupPtr setup;
};

// The nodes of a room, in their initial state and in the order of Room::nodes.
std::vector<node::Node> build_nodes(const Room& room);

// Errors name the line of the scenario.
Result<std::shared_ptr<const Room>> build_room(const config::Scenario& scenario, const RoomPolicies& policies);

// What judges may know of a room besides its trace.
JudgeSetup judge_setup_of(const node::RoomPlan& room);
// Names of nodes and slots, for rules and faults.
NodeDirectory directory_of(const node::RoomPlan& room);

}  // namespace areal::sim
