// What operations of devices do: the arithmetic of ranks, and what the room knows besides.
#include "engine/node/tiny_decode.h"
#include "sim/world/world.h"

namespace areal::sim {
namespace {

using port::ComputeKind;

// After these a process holds a model.
bool fills_memory(ComputeKind what) { return what == ComputeKind::kLoadModel || what == ComputeKind::kLoadCheckpoint; }

}  // namespace

// `cut_short`: it fails; an apply fails half-way and leaves mixed weights.
port::ComputeDone World::do_work(NodeId node, const port::StartCompute& asked, bool cut_short) {
  const RoomNode& place = room_->node(node);
  port::ComputeDone done{asked.op, asked.what, port::Outcome::kOk, asked.version, 0, 0, {}};
  if (cut_short) done.outcome = port::Outcome::kFailed;
  if (place.role == port::Role::kTrainer) {
    done = trainers_[place.train_rank].work(*room_, asked, cut_short, checkpoints_[place.train_rank]);
  } else if (place.role == port::Role::kEngine) {
    done = replicas_[place.transfer_rank].work(*room_, asked, cut_short);
    const bool wrote = asked.what == ComputeKind::kApply || asked.what == ComputeKind::kApplyDelta;
    if (wrote) weights_changed(place.engine);
  } else if (asked.what == ComputeKind::kReward && !cut_short) {
    done.count = node::rewards_differ(decisions_.seed(), asked.seed) ? 1 : 0;
  }
  if (place.transfer_rank != node::kNoTransferRank && fills_memory(asked.what) && done.outcome == port::Outcome::kOk) {
    devices_[node.value - 1].model_bytes = room_->model_bytes[place.transfer_rank];
  }
  return done;
}

}  // namespace areal::sim
