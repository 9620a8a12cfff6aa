// One step of the training loop: collect, train, pause, update, continue, announce, clear, resume.
#include <algorithm>
#include <utility>

#include "engine/proto/train_loop.h"

namespace areal::proto {
namespace {

using port::LoopPhase;
using port::RunEnd;

constexpr TimerId kPhaseTimer{2};

}  // namespace

void TrainLoop::begin_step(Outbox& out) {
  collect(out);
  repair(out);
}

// Asking again for the same batch is harmless, and answered if the answer came during a repair.
void TrainLoop::collect(Outbox& out) {
  enter(LoopPhase::kCollect, out);
  out.tell(kPoolSlot, WantBatch{batch_, step_, training_epoch_});
  await_tell(LoopState::kCollecting, out);
}

// Only what is published can be repaired, and the trainers hold exactly that while they wait for a batch.
void TrainLoop::repair(Outbox& out) {
  if (version_ == 0 || lost_ != version_) return;
  out.push(port::DisarmTimer{kPhaseTimer});
  repairing_ = true;
  tries_ = 0;
  pause(out);
}

void TrainLoop::on_batch(const BatchReady& ready, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  enter(LoopPhase::kTrain, out);
  state_ = LoopState::kTraining;
  for (std::uint32_t rank = 0; rank < cluster_.train_world(); ++rank) {
    const TrainStep train{step_,        next_version(), ready.batch, shards_of(rank, ready.groups),
                          ready.digest, training_epoch_};
    calls_.ask(cluster_.trainers[rank], kTrainRankSlot, train, out);
  }
  tries_ = 0;
}

// Round robin over the data heads, from the first one.
std::uint32_t TrainLoop::shards_of(std::uint32_t train_rank, std::uint32_t shards) const {
  const auto heads = static_cast<std::uint32_t>(cluster_.data_heads.size());
  for (std::uint32_t i = 0; i < heads; ++i) {
    if (cluster_.data_heads[i] == train_rank) return shards / heads + (i < shards % heads ? 1 : 0);
  }
  return 0;
}

void TrainLoop::on_step_done(const Record& body, Outbox& out) {
  Outcome outcome = Outcome::kMismatch;
  dispatch_record<StepDone>(body, [&](const StepDone& done) {
    if (done.version == next_version()) outcome = done.outcome;
  });
  // The ranks do not meet any more, whatever the reason: they must meet anew.
  if (outcome == Outcome::kPeerGone || outcome == Outcome::kAborted) return recover(out);
  if (outcome != Outcome::kOk) return end_run(RunEnd::kUpdateFailed, out);
  if (!calls_.pending().empty()) return;
  tries_ = 0;
  const bool due = options_.checkpoint_every != 0 && next_version() % options_.checkpoint_every == 0;
  if (!due) return pause(out);
  enter(LoopPhase::kCheckpoint, out);
  save(out);
}

void TrainLoop::pause(Outbox& out) {
  enter(repairing_ ? LoopPhase::kRepairPause : LoopPhase::kPauseRollout, out);
  out.tell(kPoolSlot, PausePool{});
  if (!options_.pause_around_update) {
    tries_ = 0;
    return update(out);
  }
  if (!repairing_) enter(LoopPhase::kPauseGeneration, out);
  ++tries_;
  gate_used_ = true;
  out.tell(kPauseGateSlot, PauseAll{});
  await_tell(LoopState::kPausing, out);
}

void TrainLoop::on_paused(Outcome outcome, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  if (outcome == Outcome::kOk) {
    tries_ = 0;
    return update(out);
  }
  if (tries_ >= options_.pause_tries) return end_run(RunEnd::kUpdateFailed, out);
  out.tell(kPoolSlot, ResumePool{});  // The engines generate; so may the pool until the next try.
  back_off(LoopState::kPauseBackoff, out);
}

void TrainLoop::update(Outbox& out) {
  enter(repairing_ ? LoopPhase::kRepairUpdate : LoopPhase::kUpdate, out);
  state_ = LoopState::kUpdating;
  ++tries_;
  lost_ = 0;  // What was lost until now is part of this update.
  offered_ = std::max(offered_, target());
  calls_.ask(cluster_.gateway, kGatewaySlot, UpdateRequest{target(), training_epoch_}, out);
}

void TrainLoop::on_updated(Outcome outcome, Outbox& out) {
  const UpdateVerdict verdict = after_update_(outcome);
  if (verdict == UpdateVerdict::kPublish) {
    tries_ = lost_tries_ = 0;
    return leave_update(out);
  }
  // Either the news of a dead training rank is on its way, or the gateway is still at work for an earlier epoch.
  const bool lost = outcome == Outcome::kPeerGone || (outcome == Outcome::kRefused && training_epoch_ > 1);
  if (verdict == UpdateVerdict::kRetry && lost && lost_tries_ < options_.lost_tries) {
    ++lost_tries_;
    --tries_;
    return back_off(LoopState::kUpdateBackoff, out);
  }
  if (verdict == UpdateVerdict::kStop || tries_ > options_.update_retries) {
    return end_run(RunEnd::kUpdateFailed, out);  // Generation stays paused.
  }
  back_off(LoopState::kUpdateBackoff, out);
}

void TrainLoop::leave_update(Outbox& out) {
  if (repairing_) enter(LoopPhase::kRepairAnnounce, out);
  if (!options_.pause_around_update) return set_versions(out);
  if (!repairing_) enter(LoopPhase::kContinueGeneration, out);
  continue_generation(out);
}

void TrainLoop::continue_generation(Outbox& out) {
  ++tries_;
  out.tell(kPauseGateSlot, ContinueAll{});
  await_tell(LoopState::kContinuing, out);
}

void TrainLoop::on_continued(Outcome outcome, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  if (outcome == Outcome::kOk) {
    gate_used_ = false;
    if (std::exchange(going_on_, false)) return go_on(out);
    return set_versions(out);
  }
  if (tries_ >= options_.pause_tries) return end_run(RunEnd::kUpdateFailed, out);
  back_off(LoopState::kContinueBackoff, out);
}

void TrainLoop::set_versions(Outbox& out) {
  if (!repairing_) enter(LoopPhase::kSetVersion, out);
  state_ = LoopState::kSettingTrainers;
  for (const NodeId trainer : cluster_.trainers) {
    calls_.ask(trainer, kTrainRankSlot, SetVersion{target(), training_epoch_}, out);
  }
}

// All that were asked have the version.
void TrainLoop::on_fanned_out(Outbox& out) {
  if (state_ == LoopState::kSettingTrainers) {
    out.note(port::VersionSet{Role::kTrainer, target()});
    state_ = LoopState::kSettingEngines;
    for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
      calls_.ask(cluster_.server(EngineId{engine}), kServerSlot, SetVersion{target(), training_epoch_}, out);
    }
  } else if (state_ == LoopState::kSettingEngines) {
    out.tell(kPoolSlot, PoolVersion{target()});
    out.note(port::VersionSet{Role::kEngine, target()});
    state_ = LoopState::kSettingRouter;
    calls_.ask(cluster_.router, kRouterSlot, SetVersion{target(), training_epoch_}, out);
  } else if (state_ == LoopState::kSettingRouter) {
    version_ = target();
    out.note(port::VersionSet{Role::kRouter, version_});
    tries_ = 0;
    if (!repairing_) return clear(out);
    repairing_ = false;
    offered_ = version_;  // All hold it and know it: nothing newer is left of what was rolled back.
    out.tell(kPoolSlot, ResumePool{});
    begin_step(out);
  } else {
    announced_ = true;
    batch_ = batch_name(next_version());
    out.note(port::VersionSet{Role::kRouter, 0});
    out.tell(kPoolSlot, PoolVersion{0});
    out.tell(kPoolSlot, ResumePool{});
    if (options_.updates == 0) return finish(out);
    begin_step(out);
  }
}

void TrainLoop::clear(Outbox& out) {
  enter(LoopPhase::kClear, out);
  ++tries_;
  out.tell(kDrainSlot, ClearBatch{batch_});
  await_tell(LoopState::kClearing, out);
}

void TrainLoop::on_cleared(const BatchCleared& cleared, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  if (cleared.outcome != Outcome::kOk) {
    if (tries_ >= options_.clear_tries) return end_run(RunEnd::kUpdateFailed, out);
    return clear(out);
  }
  enter(LoopPhase::kResume, out);
  out.tell(kPoolSlot, ResumePool{});
  ++step_;
  batch_ = batch_name(next_version());
  if (step_ < options_.updates) return begin_step(out);
  finish(out);
}

}  // namespace areal::proto
