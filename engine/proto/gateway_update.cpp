// The gateway's two sequences: connecting a pair, and moving one version through it.
#include <algorithm>

#include "engine/proto/gateway.h"

namespace areal::proto {
namespace {

constexpr PairId kPair{1};
constexpr TimerId kAttemptDeadline{1};
constexpr TimerId kWorkersDeadline{2};

}  // namespace

// Does the next thing there is to do when nothing is under way.
void Gateway::advance(Outbox& out) {
  if (step_ != Step::kIdle) return;
  const Pair* pair = registry_.get(kPair);
  if (closing_) {
    if (pair != nullptr) {
      tear_down(out);
    } else if (close_key_) {
      callee_.reply(*close_key_, Ack{}, out);
      close_key_.reset();
      closing_ = false;
    }
    return;
  }
  if (pair == nullptr) {
    const bool wanted = wants_pair_ && (connect_key_ || update_ || connects_failed_ < options_.connect_tries);
    if (!wanted) return;
    if (workers_.all_alive()) {
      out.push(port::DisarmTimer{kWorkersDeadline});
      begin_connect(out);
    } else {
      out.push(port::ArmTimer{kWorkersDeadline, options_.workers_timeout});
    }
    return;
  }
  if (lost_while_telling_) {
    lost_while_telling_ = false;
    tear_down(out);
    return;
  }
  if (update_) begin_attempt(out);
}

// ---- Connect ----

void Gateway::begin_connect(Outbox& out) {
  AREAL_CHECK(registry_.try_reserve(kPair));
  ++epoch_;
  port_ = 0;
  lost_while_telling_ = false;
  note_state(port::PairState::kReserved, out);
  fan_out(Step::kReporting, [](std::uint32_t) { return ReportMeta{}; }, out);
}

// All ranks have reported, or the port was answered for.
void Gateway::reports_settled(Outbox& out) {
  if (failed_) {
    init_settled(out);
    return;
  }
  if (step_ == Step::kReporting) {
    step_ = Step::kReservingPort;
    outstanding_ = 1;
    caller_.ask(cluster_.master_guard, kGuardSlot, ReservePort{epoch_}, out);
    return;
  }
  const Epoch epoch = epoch_;
  fan_out(
      Step::kInitialising,
      [&](std::uint32_t rank) {
        return InitGroups{
            epoch, rank, cluster_.world(), cluster_.infer_world(), cluster_.engines, port_, version_ == 0 && !touched_};
      },
      out);
}

// Every init call has finished; roll-back starts only now.
void Gateway::init_settled(Outbox& out) {
  if (failed_ || !workers_.all_alive()) {
    registry_.begin_rollback(kPair);
    note_state(port::PairState::kRollingBack, out);
    fan_out(
        Step::kRollingBack,
        [&](std::uint32_t rank) {
          const bool infers = rank < cluster_.infer_world();
          return Teardown{epoch_, infers && is_unproven(rank / cluster_.engine_world)};
        },
        out);
    return;
  }
  registry_.register_reserved(kPair, PairMode::kAwex);
  connects_failed_ = 0;
  step_ = Step::kIdle;
  note_state(port::PairState::kConnected, out);
  // As long as nobody wrote anything, what a rank has loaded is what all have.
  if (version_ == 0 && !touched_) {
    tell_router(0, out);
  } else {
    connected(out);
  }
}

void Gateway::connected(Outbox& out) {
  if (connect_key_) callee_.reply(*connect_key_, ConnectReply{Outcome::kOk, epoch_}, out);
  connect_key_.reset();
  ask_repair(out);
  advance(out);
}

void Gateway::ask_repair(Outbox& out) {
  const Pair* pair = registry_.get(kPair);
  const bool connected = pair != nullptr && pair->state == PairState::kConnected && !closing_;
  if (!connected || version_ == 0 || update_ || !has_lost_engines()) return;
  repairs_.forget_if([](const PendingRequest&) { return true; }, out);
  repairs_.ask(cluster_.controller, kTrainLoopSlot, EnginesLost{version_}, out);
}

// ---- Update ----

void Gateway::begin_history(Epoch training_epoch, Version version) {
  const bool first = training_epoch_ == 0;
  training_epoch_ = training_epoch;
  if (first) return;
  recovered_ = true;
  if (version > version_) return;
  touched_ = touched_ || version_ != 0;  // Engines hold what no rank loads.
  // The one before it is proven nowhere, but nothing is compared with it: the update is full.
  version_ = version > 0 ? version - 1 : 0;
  tried_version_ = 0;
  last_attempt_ = 0;
}

FullReason Gateway::reason_of_attempt() const {
  if (recovered_) return FullReason::kRecovered;
  if (broken_since_publish_ || update_->version == version_) return FullReason::kPeerLost;
  if (update_->attempts > 1) return FullReason::kRetry;
  if (version_ == 0) return FullReason::kNotSeeded;
  return options_.delta ? FullReason::kNone : FullReason::kNoDelta;
}

void Gateway::begin_attempt(Outbox& out) {
  const UpdateTicket ticket = registry_.begin_update(kPair, update_->version);
  if (ticket.refusal == PairRefusal::kStaleVersion && recovered_) {
    tear_down(out);  // Of this epoch it is published already, with other bytes: it is moved under the next one.
    return;
  }
  if (ticket.refusal != PairRefusal::kNone) {
    answer_update(Outcome::kRefused, out);
    return;
  }
  ticket_ = ticket.attempt;
  ++update_->attempts;
  if (tried_version_ != update_->version) last_attempt_ = 0;
  tried_version_ = update_->version;
  update_->attempt = ++last_attempt_;
  update_->bytes = 0;
  update_->reason = reason_of_attempt();
  update_->mode = update_->reason == FullReason::kNone ? UpdateMode::kDelta : UpdateMode::kFull;
  update_->heard = false;
  update_->reason_rank = 0;
  note_state(port::PairState::kUpdating, out);
  out.note(port::UpdateStarted{epoch_, update_->version, update_->attempt, update_->mode, update_->reason});
  const Prepare prepare{epoch_, update_->version, update_->attempt, version_, update_->mode};
  fan_out(Step::kPreparing, [&](std::uint32_t) { return prepare; }, out);
}

void Gateway::prepare_settled(Outbox& out) {
  if (!failed_) {
    touched_ = true;
    const Execute execute{epoch_, update_->version, update_->attempt, update_->mode, update_->reason, version_};
    out.push(port::ArmTimer{kAttemptDeadline, options_.attempt_timeout});
    fan_out(Step::kExecuting, [&](std::uint32_t) { return execute; }, out);
    return;
  }
  if (failure_ != Outcome::kMismatch) {
    fail_attempt(failure_, failed_peer_, out);
    return;
  }
  // Both ends disagree about the bytes. Nobody entered a collective, and trying again cannot help.
  out.note(port::UpdateEnded{epoch_, update_->version, update_->attempt, Outcome::kMismatch, failed_peer_});
  registry_.fail_update(kPair, update_->version, ticket_);
  step_ = Step::kIdle;
  note_state(port::PairState::kConnected, out);
  answer_update(Outcome::kMismatch, out);
  advance(out);
}

// What is about to be committed is on stable storage before anybody commits.
void Gateway::persist(const Digest128& expected, Outbox& out) {
  step_ = Step::kPersisting;
  const Digest128 value{(std::uint64_t{epoch_} << 32) | update_->attempt, update_->version};
  out.push(port::StorePut{OpId{++next_op_}, update_->version, expected, value});
}

void Gateway::on_stored(const port::StoreDone& in, Outbox& out) {
  if (step_ != Step::kPersisting || in.op.value != next_op_) return;
  if (in.outcome == Outcome::kMismatch) {  // An earlier attempt had come as far as this.
    persist(in.value, out);
    return;
  }
  if (in.outcome != Outcome::kOk) {
    fail_attempt(in.outcome, {}, out);
    return;
  }
  const Commit commit{epoch_, update_->version, update_->attempt};
  fan_out(Step::kCommitting, [&](std::uint32_t) { return commit; }, out);
}

// Nothing can undo it any more: whoever is lost from here on is lost from the new version.
void Gateway::committed(Outbox& out) {
  lost_engines_.assign(lost_engines_.size(), 0);
  touched_ = false;
  // No sender had a reason of its own: a receiver did.
  const bool unnamed = update_->mode == UpdateMode::kFull && update_->reason == FullReason::kNone;
  if (unnamed) update_->reason = FullReason::kBaseMismatch;
  tell_router(update_->version, out);
}

// A router sends work to nobody whom it was not told of. If it does not answer, it goes without them.
void Gateway::tell_router(Version version, Outbox& out) {
  step_ = Step::kTellingRouter;
  failed_ = lost_while_telling_ = false;
  outstanding_ = cluster_.engines;
  for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
    std::uint64_t incarnations = 0;
    for (std::uint32_t i = 0; i < cluster_.engine_world; ++i) {
      incarnations += workers_.at(engine * cluster_.engine_world + i).incarnation;
    }
    caller_.ask(cluster_.router, kRouterSlot, EngineMember{EngineId{engine}, version, incarnations, training_epoch_},
                out);
  }
  if (outstanding_ == 0) told_router(out);
}

void Gateway::told_router(Outbox& out) {
  step_ = Step::kIdle;
  const Pair* pair = registry_.get(kPair);
  if (pair->state == PairState::kUpdating) {
    publish(out);
  } else {
    connected(out);
  }
}

void Gateway::publish(Outbox& out) {
  const PendingUpdate& update = *update_;
  const bool repaired = update.version == version_ && !recovered_;  // Published before: everybody knows it.
  registry_.finish_update(kPair, update.version, ticket_);
  version_ = update.version;
  step_ = Step::kIdle;
  out.note(port::UpdateEnded{epoch_, version_, update.attempt, Outcome::kOk, {}});
  out.note(port::Receipt{
      port::ReceiptKind::kWeights, version_, Role::kEngine, cluster_.infer_world(), cluster_.infer_world(), {}});
  if (!repaired) {
    out.note(
        port::Receipt{port::ReceiptKind::kPublish, version_, Role::kGateway, cluster_.world(), cluster_.world(), {}});
    out.note(port::VersionPublished{epoch_, version_, update.attempt, update.mode, update.reason, update.bytes});
  }
  if (update.mode == UpdateMode::kFull) {
    out.note(port::AnchorSet{epoch_, version_, update.attempt, update.reason});
  }
  note_state(port::PairState::kConnected, out);
  broken_since_publish_ = false;
  recovered_ = false;
  answer_update(Outcome::kOk, out);
  advance(out);
}

void Gateway::answer_update(Outcome outcome, Outbox& out) {
  const PendingUpdate update = *update_;
  update_.reset();
  callee_.reply(update.key,
                UpdateReply{update.version, outcome, update.attempt, update.mode, update.reason, update.bytes}, out);
}

// ---- Failure ----

// A replaced rank holds version 0 as loaded, which is proven as long as nothing else may have been written.
bool Gateway::is_unproven(std::uint32_t engine) const {
  return (version_ != 0 || touched_) && lost_engines_[engine] != 0;
}

bool Gateway::has_lost_engines() const { return std::ranges::find(lost_engines_, 1) != lost_engines_.end(); }

// The error may have left ranks inside a collective: break the pair, end the epoch, start anew.
void Gateway::fail_attempt(Outcome outcome, NodeId peer, Outbox& out) {
  out.note(port::UpdateEnded{epoch_, update_->version, update_->attempt, outcome, peer});
  out.push(port::DisarmTimer{kAttemptDeadline});
  caller_.forget_if([](const PendingRequest&) { return true; }, out);
  registry_.mark_broken(kPair);
  broken_since_publish_ = true;
  note_state(port::PairState::kBroken, out);
  if (touched_) {
    revoke_members(out);
  } else {
    abort_members(out);
  }
}

// Engines that may have begun to write will refuse to serve: the router must know before they do.
void Gateway::revoke_members(Outbox& out) {
  step_ = Step::kRevoking;
  failed_ = false;
  outstanding_ = cluster_.engines;
  for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
    caller_.ask(cluster_.router, kRouterSlot, EngineMember{EngineId{engine}, version_, 0, training_epoch_}, out);
  }
}

void Gateway::abort_members(Outbox& out) {
  const AbortUpdate abort{epoch_, update_->version, update_->attempt};
  fan_out(Step::kAborting, [&](std::uint32_t) { return abort; }, out);
}

void Gateway::tear_down(Outbox& out) {
  repairs_.forget_if([](const PendingRequest&) { return true; }, out);
  registry_.begin_teardown(kPair);
  if (!closing_) broken_since_publish_ = true;
  note_state(port::PairState::kTearingDown, out);
  warn_router(out);
}

// An engine that lost a rank will refuse to serve: whoever sends it work must know before it does.
void Gateway::warn_router(Outbox& out) {
  step_ = Step::kWarningRouter;
  failed_ = false;
  outstanding_ = 0;
  for (std::uint32_t rank = 0; rank < cluster_.infer_world(); ++rank) {
    const Worker& worker = workers_.at(rank);
    const bool lost = lost_engines_[rank / cluster_.engine_world] != 0;
    if (worker.alive || worker.incarnation == 0 || !lost) continue;
    caller_.ask(cluster_.router, kRouterSlot, WorkerExited{worker.node, worker.incarnation}, out);
    ++outstanding_;
  }
  if (outstanding_ == 0) tear_down_members(out);
}

void Gateway::tear_down_members(Outbox& out) {
  fan_out(
      Step::kTearingDown,
      [&](std::uint32_t rank) {
        const bool infers = rank < cluster_.infer_world();
        return Teardown{epoch_, infers && is_unproven(rank / cluster_.engine_world)};
      },
      out);
}

void Gateway::torn_down(Outbox& out) {
  if (port_ == 0) {
    end_epoch(out);
    return;
  }
  step_ = Step::kReturningPort;
  outstanding_ = 1;
  caller_.ask(cluster_.master_guard, kGuardSlot, ReturnPort{epoch_, port_}, out);
}

void Gateway::end_epoch(Outbox& out) {
  const Pair* pair = registry_.get(kPair);
  const bool rolled_back = pair != nullptr && pair->state == PairState::kRollingBack;
  if (rolled_back) {
    registry_.release_reservation(kPair);
    ++connects_failed_;
  } else {
    registry_.unregister(kPair);
  }
  port_ = 0;
  step_ = Step::kIdle;
  note_state(port::PairState::kAbsent, out);
  const bool gives_up = connects_failed_ >= options_.connect_tries;
  if (gives_up && connect_key_) {
    callee_.reply(*connect_key_, ConnectReply{Outcome::kFailed, epoch_}, out);
    connect_key_.reset();
  }
  if (update_ && lost_trainer_) {
    // A training rank that died holds other weights now: whoever restores it asks anew.
    answer_update(Outcome::kPeerGone, out);
  } else if (update_ && (gives_up || closing_ || update_->attempts >= options_.max_attempts)) {
    answer_update(Outcome::kFailed, out);
  }
  advance(out);
}

}  // namespace areal::proto
