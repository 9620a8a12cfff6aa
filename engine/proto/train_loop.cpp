#include "engine/proto/train_loop.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::proto {
namespace {

using port::LoopPhase;
using port::RunEnd;

constexpr TimerId kBackoffTimer{1};
constexpr TimerId kPhaseTimer{2};

}  // namespace

TrainLoop::TrainLoop(const TrainLoopOptions& options, ClusterMap cluster, AfterUpdate after_update)
    : options_(options), cluster_(std::move(cluster)), after_update_(after_update), calls_(options.calls) {}

void TrainLoop::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    incarnation_ = started->incarnation;
    calls_.start(incarnation_);
    connect(out);
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    if (message->kind != port::MessageKind::kReply)
      on_request(*message, out);
    else if (calls_.answered(*message, out).has_value())
      on_reply(message->body, out);
  } else if (const auto* told = std::get_if<port::TellIn>(&input)) {
    on_tell(told->body, out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    on_timer(*fired, out);
  }
  AREAL_CHECK(state_ != LoopState::kEnded || calls_.pending().empty());
  AREAL_CHECK(version_ == step_ || version_ == step_ + 1);
}

// ---- Requests ----

void TrainLoop::on_request(const port::MessageIn& message, Outbox& out) {
  const auto refuse = [&] {
    out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, message.body.kind});
  };
  if (message.from != cluster_.gateway) return refuse();
  if (!callee_.admit(message, out)) return;
  const bool known = dispatch_record<EnginesLost>(message.body, [&](const EnginesLost& said) {
    callee_.reply(Callee::key_of(message), Ack{}, out);
    lost_ = std::max(lost_, said.version);
    if (state_ == LoopState::kCollecting) repair(out);
  });
  if (!known) refuse();
}

// ---- Answers ----

void TrainLoop::on_reply(const Record& body, Outbox& out) {
  switch (state_) {
    case LoopState::kConnecting: {
      Outcome outcome = Outcome::kMismatch;
      dispatch_record<ConnectReply>(body, [&](const ConnectReply& reply) { outcome = reply.outcome; });
      return on_connect(outcome, out);
    }
    case LoopState::kTraining: {
      bool ok = false;
      dispatch_record<StepDone>(
          body, [&](const StepDone& done) { ok = done.outcome == Outcome::kOk && done.version == next_version(); });
      if (!ok) return end_run(RunEnd::kUpdateFailed, out);
      if (calls_.pending().empty()) pause(out);
      return;
    }
    case LoopState::kUpdating: {
      Outcome outcome = Outcome::kMismatch;
      dispatch_record<UpdateReply>(body, [&](const UpdateReply& reply) {
        if (reply.version == target()) outcome = reply.outcome;
      });
      return on_updated(outcome, out);
    }
    case LoopState::kAnnouncing:
    case LoopState::kSettingTrainers:
    case LoopState::kSettingEngines:
    case LoopState::kSettingRouter:
      if (body.kind != Ack::kKind) return end_run(RunEnd::kUpdateFailed, out);
      if (calls_.pending().empty()) on_fanned_out(out);
      return;
    case LoopState::kDisconnecting:
      return end_run(RunEnd::kCompleted, out);
    case LoopState::kIdle:
    case LoopState::kConnectBackoff:
    case LoopState::kCollecting:
    case LoopState::kPausing:
    case LoopState::kPauseBackoff:
    case LoopState::kUpdateBackoff:
    case LoopState::kContinuing:
    case LoopState::kContinueBackoff:
    case LoopState::kClearing:
    case LoopState::kEnded:
      return;  // Nobody was asked.
  }
}

void TrainLoop::on_tell(const Record& body, Outbox& out) {
  const auto refuse = [&] { out.note(port::Refused{body.kind, Refusal::kStaleAttempt, cluster_.controller, step_}); };
  const bool known = dispatch_record<BatchReady>(body,
                                                 [&](const BatchReady& ready) {
                                                   if (state_ == LoopState::kCollecting && ready.batch == batch())
                                                     on_batch(ready, out);
                                                   else
                                                     refuse();
                                                 }) ||
                     dispatch_record<AllPaused>(body,
                                                [&](const AllPaused& paused) {
                                                  if (state_ == LoopState::kPausing)
                                                    on_paused(paused.outcome, out);
                                                  else
                                                    refuse();
                                                }) ||
                     dispatch_record<AllContinued>(body,
                                                   [&](const AllContinued& continued) {
                                                     if (state_ == LoopState::kContinuing)
                                                       on_continued(continued.outcome, out);
                                                     else
                                                       refuse();
                                                   }) ||
                     dispatch_record<BatchCleared>(body, [&](const BatchCleared& cleared) {
                       if (state_ == LoopState::kClearing && cleared.batch == batch())
                         on_cleared(cleared.outcome, out);
                       else
                         refuse();
                     });
  if (!known) out.note(port::Refused{body.kind, Refusal::kUnknown, cluster_.controller, step_});
}

void TrainLoop::on_timer(const port::TimerFired& fired, Outbox& out) {
  if (fired.timer == kPhaseTimer) {
    const bool waits = state_ == LoopState::kCollecting || state_ == LoopState::kPausing ||
                       state_ == LoopState::kContinuing || state_ == LoopState::kClearing;
    if (waits) end_run(RunEnd::kUpdateFailed, out);
    return;
  }
  if (fired.timer == kBackoffTimer) {
    if (state_ == LoopState::kConnectBackoff)
      connect(out);
    else if (state_ == LoopState::kPauseBackoff)
      pause(out);
    else if (state_ == LoopState::kUpdateBackoff)
      update(out);
    else if (state_ == LoopState::kContinueBackoff)
      leave_update(out);
    return;
  }
  if (calls_.on_timer(fired, out).what == Caller::Fired::kGaveUp) on_gave_up(out);
}

void TrainLoop::on_gave_up(Outbox& out) {
  if (state_ == LoopState::kConnecting) return on_connect(Outcome::kTimedOut, out);
  if (state_ == LoopState::kUpdating) return on_updated(Outcome::kTimedOut, out);
  if (state_ == LoopState::kAnnouncing) return end_run(RunEnd::kConnectFailed, out);
  // What could be done was done: a gateway that is gone holds no pair.
  if (state_ == LoopState::kDisconnecting) return end_run(RunEnd::kCompleted, out);
  end_run(RunEnd::kUpdateFailed, out);
}

// ---- Start ----

void TrainLoop::connect(Outbox& out) {
  state_ = LoopState::kConnecting;
  ++tries_;
  calls_.ask(cluster_.gateway, kGatewaySlot, ConnectRequest{}, out);
}

void TrainLoop::on_connect(Outcome outcome, Outbox& out) {
  if (outcome != Outcome::kOk) {
    if (tries_ >= options_.connect_tries) return end_run(RunEnd::kConnectFailed, out);
    return back_off(LoopState::kConnectBackoff, out);
  }
  state_ = LoopState::kAnnouncing;
  calls_.ask(cluster_.router, kRouterSlot, SetVersion{0}, out);
}

// ---- One step ----

void TrainLoop::begin_step(Outbox& out) {
  collect(out);
  repair(out);
}

// Asking again for the same batch is harmless, and answered if the answer came during a repair.
void TrainLoop::collect(Outbox& out) {
  enter(LoopPhase::kCollect, out);
  out.tell(kPoolSlot, WantBatch{batch(), step_});
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
    const TrainStep train{step_, next_version(), ready.batch, shards_of(rank, ready.groups), ready.digest};
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

void TrainLoop::pause(Outbox& out) {
  enter(repairing_ ? LoopPhase::kRepairPause : LoopPhase::kPauseRollout, out);
  out.tell(kPoolSlot, PausePool{});
  if (!options_.pause_around_update) {
    tries_ = 0;
    return update(out);
  }
  if (!repairing_) enter(LoopPhase::kPauseGeneration, out);
  ++tries_;
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
  calls_.ask(cluster_.gateway, kGatewaySlot, UpdateRequest{target()}, out);
}

void TrainLoop::on_updated(Outcome outcome, Outbox& out) {
  const UpdateVerdict verdict = after_update_(outcome);
  if (verdict == UpdateVerdict::kPublish) {
    tries_ = 0;
    return leave_update(out);
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
  ++tries_;
  out.tell(kPauseGateSlot, ContinueAll{});
  await_tell(LoopState::kContinuing, out);
}

void TrainLoop::on_continued(Outcome outcome, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  if (outcome == Outcome::kOk) return set_versions(out);
  if (tries_ >= options_.pause_tries) return end_run(RunEnd::kUpdateFailed, out);
  back_off(LoopState::kContinueBackoff, out);
}

void TrainLoop::set_versions(Outbox& out) {
  if (!repairing_) enter(LoopPhase::kSetVersion, out);
  state_ = LoopState::kSettingTrainers;
  for (const NodeId trainer : cluster_.trainers) {
    calls_.ask(trainer, kTrainRankSlot, SetVersion{target()}, out);
  }
}

// All that were asked have the version.
void TrainLoop::on_fanned_out(Outbox& out) {
  if (state_ == LoopState::kSettingTrainers) {
    out.note(port::VersionSet{Role::kTrainer, target()});
    state_ = LoopState::kSettingEngines;
    for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
      calls_.ask(cluster_.server(EngineId{engine}), kServerSlot, SetVersion{target()}, out);
    }
  } else if (state_ == LoopState::kSettingEngines) {
    out.tell(kPoolSlot, PoolVersion{target()});
    out.note(port::VersionSet{Role::kEngine, target()});
    state_ = LoopState::kSettingRouter;
    calls_.ask(cluster_.router, kRouterSlot, SetVersion{target()}, out);
  } else if (state_ == LoopState::kSettingRouter) {
    version_ = target();
    out.note(port::VersionSet{Role::kRouter, version_});
    tries_ = 0;
    if (!repairing_) return clear(out);
    repairing_ = false;
    out.tell(kPoolSlot, ResumePool{});
    begin_step(out);
  } else {
    out.note(port::VersionSet{Role::kRouter, 0});
    out.tell(kPoolSlot, PoolVersion{0});
    out.tell(kPoolSlot, ResumePool{});
    if (options_.updates == 0) return end_run(RunEnd::kCompleted, out);
    begin_step(out);
  }
}

void TrainLoop::clear(Outbox& out) {
  enter(LoopPhase::kClear, out);
  ++tries_;
  out.tell(kDrainSlot, ClearBatch{batch()});
  await_tell(LoopState::kClearing, out);
}

void TrainLoop::on_cleared(Outcome outcome, Outbox& out) {
  out.push(port::DisarmTimer{kPhaseTimer});
  if (outcome != Outcome::kOk) {
    if (tries_ >= options_.clear_tries) return end_run(RunEnd::kUpdateFailed, out);
    return clear(out);
  }
  enter(LoopPhase::kResume, out);
  out.tell(kPoolSlot, ResumePool{});
  ++step_;
  if (step_ < options_.updates) return begin_step(out);
  state_ = LoopState::kDisconnecting;
  calls_.ask(cluster_.gateway, kGatewaySlot, DisconnectRequest{}, out);
}

// ---- Common ----

void TrainLoop::enter(LoopPhase phase, Outbox& out) { out.note(port::PhaseEntered{step_, phase, version_}); }

void TrainLoop::await_tell(LoopState state, Outbox& out) {
  state_ = state;
  out.push(port::ArmTimer{kPhaseTimer, options_.phase_timeout});
}

void TrainLoop::back_off(LoopState state, Outbox& out) {
  state_ = state;
  out.push(port::ArmTimer{kBackoffTimer, options_.retry_after});
}

void TrainLoop::end_run(RunEnd end, Outbox& out) {
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  out.push(port::DisarmTimer{kPhaseTimer});
  state_ = LoopState::kEnded;
  if (end == RunEnd::kCompleted) enter(LoopPhase::kDone, out);
  out.note(port::RunEnded{end, step_, version_});
}

// Never used twice, also not by a controller that began again.
TrainBatchId TrainLoop::batch() const { return {(std::uint64_t{incarnation_ - 1} << 32) | (step_ + 1)}; }

void TrainLoop::list_waits(WaitList& waits) const {
  for (const auto& entry : calls_.pending()) waits.push_back({entry.value.to, to_text(state_), target()});
  const bool waits_for_tell = state_ == LoopState::kCollecting || state_ == LoopState::kPausing ||
                              state_ == LoopState::kContinuing || state_ == LoopState::kClearing;
  if (waits_for_tell) waits.push_back({cluster_.controller, to_text(state_), step_});
}

}  // namespace areal::proto
