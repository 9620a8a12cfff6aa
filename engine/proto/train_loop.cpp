#include "engine/proto/train_loop.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/check.h"

namespace areal::proto {
namespace {

using port::LoopPhase;
using port::RunEnd;

constexpr TimerId kBackoffTimer{1};
constexpr TimerId kPhaseTimer{2};
constexpr TimerId kRecoverTimer{3};

}  // namespace

TrainLoop::TrainLoop(const TrainLoopOptions& options, ClusterMap cluster, AfterUpdate after_update)
    : options_(options),
      cluster_(std::move(cluster)),
      after_update_(after_update),
      ranks_(cluster_.trainers.size()),
      calls_(options.calls) {}

void TrainLoop::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    incarnation_ = started->incarnation;
    calls_.start(incarnation_);
    info_.start(incarnation_);
    connect(out);
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    if (message->kind != port::MessageKind::kReply)
      on_request(*message, out);
    else if (calls_.answered(*message, out).has_value())
      on_reply(*message, out);
  } else if (const auto* told = std::get_if<port::TellIn>(&input)) {
    on_tell(told->body, out);
  } else if (const auto* stored = std::get_if<port::StoreDone>(&input)) {
    on_stored(*stored, out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    on_timer(*fired, out);
  }
  check_invariants();
}

void TrainLoop::check_invariants() const {
  AREAL_CHECK(state_ != LoopState::kEnded || calls_.pending().empty());
  AREAL_CHECK(version_ == step_ || version_ == step_ + 1);
  AREAL_CHECK(ports_.size() <= std::size_t{options_.max_recoveries} + 2);
}

// ---- Requests ----

void TrainLoop::on_request(const port::MessageIn& message, Outbox& out) {
  if (message.from != cluster_.gateway && !is_guard(message.from)) {
    out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, message.body.kind});
    return;
  }
  if (!callee_.admit(message, out)) return;
  const auto acknowledge = [&] { callee_.reply(Callee::key_of(message), Ack{}, out); };
  bool known = false;
  if (message.from == cluster_.gateway) {
    known = dispatch_record<EnginesLost>(message.body, [&](const EnginesLost& said) {
      acknowledge();
      lost_ = std::max(lost_, said.version);
      if (state_ == LoopState::kCollecting) repair(out);
    });
  } else {
    known = dispatch_record<WorkerExited>(message.body,
                                          [&](const WorkerExited& exited) {
                                            acknowledge();
                                            on_rank_exited(exited, out);
                                          }) ||
            dispatch_record<WorkerStarted>(message.body, [&](const WorkerStarted& started) {
              acknowledge();
              on_rank_started(started, out);
            });
  }
  if (!known) out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, message.body.kind});
}

// ---- Answers ----

void TrainLoop::on_reply(const port::MessageIn& message, Outbox& out) {
  const Record& body = message.body;
  Outcome outcome = Outcome::kMismatch;
  switch (state_) {
    case LoopState::kConnecting:
      dispatch_record<ConnectReply>(body, [&](const ConnectReply& reply) { outcome = reply.outcome; });
      return on_connect(outcome, out);
    case LoopState::kReservingPort: {
      std::uint16_t port = 0;
      dispatch_record<PortReserved>(body, [&](const PortReserved& reply) {
        if (reply.epoch == training_epoch_ + 1) outcome = reply.outcome;
        port = reply.port;
      });
      return on_port(outcome, port, out);
    }
    case LoopState::kJoining:
      return on_rank_joined(message, out);
    case LoopState::kReturningPorts:
      if (calls_.pending().empty()) on_ports_returned(out);
      return;
    case LoopState::kTraining:
      return on_step_done(body, out);
    case LoopState::kSaving:
      return on_saved(body, out);
    case LoopState::kUpdating:
      dispatch_record<UpdateReply>(body, [&](const UpdateReply& reply) {
        if (reply.version == target()) outcome = reply.outcome;
      });
      return on_updated(outcome, out);
    case LoopState::kAnnouncing:
    case LoopState::kSettingTrainers:
    case LoopState::kSettingEngines:
    case LoopState::kSettingRouter:
      if (body.kind != Ack::kKind) return end_run(RunEnd::kUpdateFailed, out);
      if (calls_.pending().empty()) on_fanned_out(out);
      return;
    case LoopState::kLeavingWorld:
      if (calls_.pending().empty()) disconnect(out);
      return;
    case LoopState::kDisconnecting:
      if (calls_.pending().empty()) end_run(RunEnd::kCompleted, out);
      return;
    case LoopState::kIdle:
    case LoopState::kConnectBackoff:
    case LoopState::kAwaitingRanks:
    case LoopState::kPortBackoff:
    case LoopState::kReadingInfo:
    case LoopState::kCollecting:
    case LoopState::kSaveBackoff:
    case LoopState::kWritingInfo:
    case LoopState::kResettingPool:
    case LoopState::kVoidingBatch:
    case LoopState::kVoidingShards:
    case LoopState::kVoidBackoff:
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
  // Whoever was interrupted by a recovery may be answered late.
  const auto take = [&](bool awaited, auto&& act) {
    if (awaited)
      act();
    else
      out.note(port::Refused{body.kind, Refusal::kStaleAttempt, cluster_.controller, step_});
  };
  const bool known =
      dispatch_record<BatchReady>(body,
                                  [&](const BatchReady& ready) {
                                    take(state_ == LoopState::kCollecting && ready.batch == batch_,
                                         [&] { on_batch(ready, out); });
                                  }) ||
      dispatch_record<AllPaused>(
          body,
          [&](const AllPaused& said) { take(state_ == LoopState::kPausing, [&] { on_paused(said.outcome, out); }); }) ||
      dispatch_record<AllContinued>(body,
                                    [&](const AllContinued& said) {
                                      take(state_ == LoopState::kContinuing, [&] { on_continued(said.outcome, out); });
                                    }) ||
      dispatch_record<PoolReset>(body,
                                 [&](const PoolReset& reset) {
                                   take(state_ == LoopState::kResettingPool && reset.version == version_,
                                        [&] { on_pool_reset(out); });
                                 }) ||
      dispatch_record<BatchCleared>(body, [&](const BatchCleared& cleared) {
        const bool shards = state_ == LoopState::kVoidingShards && cleared.batch == void_;
        const bool batch = state_ == LoopState::kVoidingBatch && cleared.batch == batch_;
        if (shards || batch) return on_voided(cleared.outcome, out);
        take(state_ == LoopState::kClearing && cleared.batch == batch_, [&] { on_cleared(cleared, out); });
      });
  if (!known) out.note(port::Refused{body.kind, Refusal::kUnknown, cluster_.controller, step_});
}

void TrainLoop::on_timer(const port::TimerFired& fired, Outbox& out) {
  if (fired.timer == kPhaseTimer) {
    const bool recovers = state_ == LoopState::kReadingInfo || state_ == LoopState::kResettingPool;
    if (awaits_tell()) end_run(recovers ? RunEnd::kRecoveryFailed : RunEnd::kUpdateFailed, out);
  } else if (fired.timer == kRecoverTimer) {
    if (clock_runs_) end_run(world_failed(), out);
  } else if (fired.timer == kBackoffTimer) {
    on_backoff(out);
  } else if (calls_.on_timer(fired, out).what == Caller::Fired::kGaveUp) {
    on_gave_up(out);
  }
}

void TrainLoop::on_backoff(Outbox& out) {
  if (state_ == LoopState::kConnectBackoff)
    connect(out);
  else if (state_ == LoopState::kPortBackoff)
    open_world(out);
  else if (state_ == LoopState::kSaveBackoff)
    save(out);
  else if (state_ == LoopState::kVoidBackoff)
    on_pool_reset(out);
  else if (state_ == LoopState::kPauseBackoff)
    pause(out);
  else if (state_ == LoopState::kUpdateBackoff)
    update(out);
  else if (state_ == LoopState::kContinueBackoff && going_on_)
    continue_generation(out);
  else if (state_ == LoopState::kContinueBackoff)
    leave_update(out);
}

void TrainLoop::on_gave_up(Outbox& out) {
  if (state_ == LoopState::kConnecting) return on_connect(Outcome::kTimedOut, out);
  if (state_ == LoopState::kReservingPort) return on_port(Outcome::kTimedOut, 0, out);
  if (state_ == LoopState::kJoining) return end_run(world_failed(), out);
  if (state_ == LoopState::kReturningPorts) {  // It is their host's loss.
    if (calls_.pending().empty()) on_ports_returned(out);
    return;
  }
  if (state_ == LoopState::kLeavingWorld) {
    if (calls_.pending().empty()) disconnect(out);
    return;
  }
  if (state_ == LoopState::kUpdating) return on_updated(Outcome::kTimedOut, out);
  if (state_ == LoopState::kAnnouncing) return end_run(RunEnd::kConnectFailed, out);
  // What could be done was done: a gateway that is gone holds no pair.
  if (state_ == LoopState::kDisconnecting) return end_run(RunEnd::kCompleted, out);
  end_run(RunEnd::kUpdateFailed, out);
}

// ---- Start and end ----

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
  tries_ = 0;
  open_world(out);
}

void TrainLoop::announce(Outbox& out) {
  state_ = LoopState::kAnnouncing;
  calls_.ask(cluster_.router, kRouterSlot, SetVersion{0, training_epoch_}, out);
}

void TrainLoop::finish(Outbox& out) {
  state_ = LoopState::kLeavingWorld;
  for (const NodeId trainer : cluster_.trainers) {
    calls_.ask(trainer, kTrainRankSlot, LeaveTraining{training_epoch_}, out);
  }
}

void TrainLoop::disconnect(Outbox& out) {
  state_ = LoopState::kDisconnecting;
  calls_.ask(cluster_.gateway, kGatewaySlot, DisconnectRequest{}, out);
  return_ports(training_epoch_ + 1, out);
}

// ---- Common ----

void TrainLoop::enter(LoopPhase phase, Outbox& out) { out.note(port::PhaseEntered{step_, phase, version_}); }

void TrainLoop::await_tell(LoopState state, Outbox& out) {
  state_ = state;
  out.push(port::ArmTimer{kPhaseTimer, options_.phase_timeout});
}

bool TrainLoop::awaits_tell() const {
  constexpr std::array kAwaiting{LoopState::kReadingInfo,   LoopState::kCollecting,   LoopState::kWritingInfo,
                                 LoopState::kResettingPool, LoopState::kVoidingBatch, LoopState::kVoidingShards,
                                 LoopState::kPausing,       LoopState::kContinuing,   LoopState::kClearing};
  return std::ranges::find(kAwaiting, state_) != kAwaiting.end();
}

void TrainLoop::back_off(LoopState state, Outbox& out) {
  state_ = state;
  out.push(port::ArmTimer{kBackoffTimer, options_.retry_after});
}

void TrainLoop::end_run(RunEnd end, Outbox& out) {
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  info_.drop();
  out.push(port::DisarmTimer{kPhaseTimer});
  if (std::exchange(clock_runs_, false)) out.push(port::DisarmTimer{kRecoverTimer});
  state_ = LoopState::kEnded;
  if (end == RunEnd::kCompleted) enter(LoopPhase::kDone, out);
  out.note(port::RunEnded{end, step_, version_});
}

TrainBatchId TrainLoop::batch_name(std::uint64_t number) const {
  return {(std::uint64_t{incarnation_ - 1} << 48) | (std::uint64_t{training_epoch_ - 1} << 32) | number};
}

void TrainLoop::list_waits(WaitList& waits) const {
  for (const auto& entry : calls_.pending()) waits.push_back({entry.value.to, to_text(state_), target()});
  if (awaits_tell()) waits.push_back({cluster_.controller, to_text(state_), step_});
  if (state_ != LoopState::kAwaitingRanks) return;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].alive) waits.push_back({cluster_.trainers[rank], to_text(state_), rank});
  }
}

}  // namespace areal::proto
