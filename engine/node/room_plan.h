// The machine room of a scenario as both a simulation and real processes know it: who runs where, which protocols they
// host, who sends which bytes to whom, and the small live model.
//
// Immutable, shared by all that use it: plans of 18,867 tensors are built once.
#pragma once
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/layout.h"
#include "engine/config/scenario.h"
#include "engine/node/protocol_box.h"
#include "engine/node/tiny_engine.h"
#include "engine/node/tiny_replica.h"
#include "engine/proto/cluster.h"
#include "engine/proto/delta_policy.h"
#include "engine/proto/member_plan.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/pause_gate.h"
#include "engine/proto/reconstruct_plan.h"
#include "engine/proto/router.h"
#include "engine/proto/staleness.h"
#include "engine/proto/train_loop.h"
#include "engine/proto/training_group.h"
#include "engine/proto/transfer_plan.h"
#include "engine/proto/update_member.h"
#include "engine/proto/write_lock.h"

namespace areal::node {

inline constexpr std::uint32_t kNoTransferRank = std::numeric_limits<std::uint32_t>::max();

struct RoomNode {
  NodeId id{};
  std::string name;
  port::Role role = port::Role::kGuard;
  HostId host{};
  EngineId engine{};
  std::uint32_t infer_rank = 0;  // Inside its engine.
  std::uint32_t train_rank = 0;
  std::uint32_t transfer_rank = kNoTransferRank;
  NodeId starter{};  // Its guard; 0: it runs from the start.
};

// The seats where a protocol takes a decision that a defect can take wrongly; the product's are the defaults.
struct RoomPolicies {
  std::shared_ptr<const proto::NamePolicy> names;  // Null: the right rename map.
  proto::RepeatPolicy repeats = proto::never_repeat;
  proto::EnterPolicy may_enter = proto::enter_once;
  proto::LockPolicy lock = proto::claim_at_once;
  proto::PauseVerdict pause = proto::all_paused;
  proto::AfterUpdate after_update = proto::publish_only_when_ok;
  proto::EligiblePolicy eligible = proto::hold_published;
  proto::RecoveredCount recovered = proto::as_if_never_lost;
  proto::ReducePolicy reduces = proto::always_reduces;
  proto::DeltaPolicies delta;
  AliasStorage aliases = AliasStorage::kShared;
};

struct RoomPlan {
  config::Scenario scenario;
  config::ModelSpec model;
  config::ParallelStrategy train;
  config::ParallelStrategy infer;  // Of one engine.
  proto::ClusterMap cluster;
  std::vector<RoomNode> nodes;  // nodes[i].id == i + 1.
  std::uint32_t hosts = 0;
  std::shared_ptr<const proto::TransferPlan> plan;                // Of the configured model: bytes and times.
  std::shared_ptr<const std::vector<proto::MemberPlan>> members;  // By transfer rank.
  std::vector<std::uint64_t> model_bytes;                         // Held by each transfer rank.
  std::shared_ptr<const proto::ReconstructPlans> reconstruct;     // Of the configured model.
  Digest128 train_meta;
  Digest128 infer_meta;
  TinyShapePtr tiny;  // Live tensors.
  RoomPolicies policies;

  // REQUIRES: a node of this room.
  [[nodiscard]] const RoomNode& node(NodeId id) const { return nodes[id.value - 1]; }
  // Null if no node has that name.
  [[nodiscard]] const RoomNode* find(std::string_view name) const;
};

// Errors name the line of the scenario.
Result<RoomPlan> plan_room(const config::Scenario& scenario, const RoomPolicies& policies);

// The protocols of one node, by slot, in their initial state.
std::vector<ProtocolBox> protocols_of(const RoomPlan& room, const RoomNode& node);
// Their names.
std::vector<std::string> slot_names(const RoomPlan& room, const RoomNode& node);

// Adds all kinds that cross the seam of these protocols.
void add_room_kinds(KindTable& kinds);

}  // namespace areal::node
