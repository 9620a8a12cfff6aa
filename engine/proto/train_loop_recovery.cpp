// Recovery of the training loop: who lives, what is begun anew, and from where it goes on.
#include <algorithm>
#include <utility>

#include "engine/proto/train_loop.h"

namespace areal::proto {
namespace {

using port::LoopPhase;
using port::RunEnd;

constexpr TimerId kBackoffTimer{1};
constexpr TimerId kPhaseTimer{2};

}  // namespace

// ---- Who lives ----

bool TrainLoop::all_alive() const { return std::ranges::all_of(ranks_, &LoopRank::alive); }

bool TrainLoop::is_guard(NodeId node) const {
  return std::ranges::find(cluster_.guards, node) != cluster_.guards.end();
}

void TrainLoop::on_rank_exited(const WorkerExited& exited, Outbox& out) {
  const auto place = std::ranges::find(cluster_.trainers, exited.node);
  if (place == cluster_.trainers.end()) return;  // An engine's: the gateway deals with it.
  LoopRank& rank = ranks_[static_cast<std::size_t>(place - cluster_.trainers.begin())];
  if (exited.incarnation < rank.incarnation) return;
  rank.incarnation = exited.incarnation;
  if (std::exchange(rank.alive, false)) lose_rank(out);
}

void TrainLoop::on_rank_started(const WorkerStarted& started, Outbox& out) {
  const auto place = std::ranges::find(cluster_.trainers, started.node);
  if (place == cluster_.trainers.end()) return;
  LoopRank& rank = ranks_[static_cast<std::size_t>(place - cluster_.trainers.begin())];
  if (started.incarnation <= rank.incarnation) return;
  const bool died_unnoticed = rank.alive && rank.incarnation != 0;
  rank = {started.incarnation, true};
  if (died_unnoticed) return lose_rank(out);
  if (state_ == LoopState::kAwaitingRanks) open_world(out);
}

// Nothing is lost with a rank that was not asked to join yet, or that has nothing left to do.
void TrainLoop::lose_rank(Outbox& out) {
  const bool between = state_ == LoopState::kAwaitingRanks || state_ == LoopState::kReservingPort ||
                       state_ == LoopState::kPortBackoff || state_ == LoopState::kReadingInfo;
  const bool over =
      state_ == LoopState::kLeavingWorld || state_ == LoopState::kDisconnecting || state_ == LoopState::kEnded;
  if (training_epoch_ == 0 || between || over) return;
  recover(out);
}

// ---- Recovery ----

void TrainLoop::recover(Outbox& out) {
  if (++recoveries_ > options_.max_recoveries) return end_run(RunEnd::kRecoveryFailed, out);
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  info_.drop();
  out.push(port::DisarmTimer{kPhaseTimer});
  out.push(port::DisarmTimer{kBackoffTimer});
  if (std::exchange(repairing_, false)) lost_ = version_;  // The repair begins again.
  going_on_ = false;
  tries_ = lost_tries_ = 0;
  enter(LoopPhase::kRecover, out);
  out.tell(kPoolSlot, PausePool{});
  open_world(out);
}

// All ranks hold `version`. What engines may hold decides: they must not hold what no rank does any more.
void TrainLoop::go_on_from(Version version, Outbox& out) {
  const bool is_to_publish = version_ == step_ && version == next_version();
  if (is_to_publish) return pause(out);
  if (version > version_) return end_run(RunEnd::kRecoveryFailed, out);
  if (version < version_ || version < offered_) return roll_back(version, out);
  if (!gate_used_) return go_on(out);
  going_on_ = true;
  continue_generation(out);
}

// The published version is what ranks and engines hold. A step that was published is only cleared.
void TrainLoop::go_on(Outbox& out) {
  tries_ = 0;
  if (version_ != step_) return clear(out);
  out.tell(kPoolSlot, ResumePool{});
  begin_step(out);
}

// ---- Roll-back ----

void TrainLoop::roll_back(Version version, Outbox& out) {
  version_ = step_ = version;
  lost_ = 0;
  if (void_ == TrainBatchId{}) void_ = batch_name(0);  // Else some are still named so.
  out.tell(kPoolSlot, ResetPool{version_, void_});
  await_tell(LoopState::kResettingPool, out);
}

// First what the batch of the present step took, then what no batch did.
void TrainLoop::on_pool_reset(Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  ++tries_;
  out.tell(kDrainSlot, ClearBatch{batch_});
  await_tell(LoopState::kVoidingBatch, out);
}

void TrainLoop::on_voided(Outcome outcome, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  if (outcome != Outcome::kOk) {
    if (tries_ >= options_.pause_tries) return end_run(RunEnd::kRecoveryFailed, out);
    return back_off(LoopState::kVoidBackoff, out);
  }
  if (state_ == LoopState::kVoidingBatch) {
    out.tell(kDrainSlot, ClearBatch{void_});
    return await_tell(LoopState::kVoidingShards, out);
  }
  void_ = {};
  batch_ = batch_name(next_version());
  repairing_ = true;
  tries_ = 0;
  pause(out);
}

}  // namespace areal::proto
