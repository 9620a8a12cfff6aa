#include "engine/proto/update_receiver.h"

namespace areal::proto {

void UpdateReceiver::step(const Input& input, Outbox& out) {
  if (std::holds_alternative<port::Started>(input)) {
    member_.start_compute(port::ComputeKind::kLoadModel, out);
    return;
  }
  if (const auto* told = std::get_if<port::TellIn>(&input)) {
    const bool granted = told->body.kind == WriteGranted::kKind;
    if (granted && stage_ == Stage::kLocking && member_.phase() == MemberPhase::kExecuting) vote(out);
    return;
  }
  using What = MemberEvent::What;
  const MemberEvent event = member_.on_input(input, out);
  switch (event.what) {
    case What::kNone:
      break;
    case What::kEntered:
      begin(out);
      break;
    case What::kStaged:
      stage_ = Stage::kLanding;
      member_.post_next(mode_, 0, out);
      break;
    case What::kCompute:
      on_compute(event.compute, out);
      break;
    case What::kBatch:
      on_batch(event.batch, out);
      break;
    case What::kCommit:
      quarantined_ = false;
      member_.commit(out);
      note_state(port::ServeState::kServing, out);
      if (serves_) out.tell(kServerSlot, WeightsCommitted{member_.version()});
      break;
    case What::kEnded:
      end(out);
      break;
    case What::kConnected:
      // A rank that was replaced holds what it loaded, and its engine something else: only the gateway can tell.
      if (serves_ && member_.as_loaded()) out.tell(kServerSlot, WeightsCommitted{0});
      break;
  }
}

void UpdateReceiver::begin(Outbox& out) {
  if (!member_.options().delta) return stage_payload(UpdateMode::kFull, out);
  stage_ = Stage::kVotingMode;
  const AttemptMode& asked = member_.asked();
  const HoldPolicy holds = member_.options().policies.holds;
  const bool can = asked.mode == UpdateMode::kDelta && holds(asked.base, member_.version(), quarantined_);
  member_.meet({port::BatchKind::kMin, MeetingKind::kMode, can ? 1U : 0U, 0}, out);
}

void UpdateReceiver::stage_payload(UpdateMode mode, Outbox& out) {
  mode_ = mode;
  stage_ = Stage::kStaging;
  member_.reserve_staging(out);
}

void UpdateReceiver::note_state(port::ServeState state, Outbox& out) const {
  const MemberOptions& options = member_.options();
  out.note(port::WeightsState{options.engine, options.role_rank, state, member_.version(), held_});
}

void UpdateReceiver::on_compute(const port::ComputeDone& done, Outbox& out) {
  switch (done.what) {
    case port::ComputeKind::kLoadModel:
      if (done.outcome != Outcome::kOk) {  // It holds nothing yet; whoever asks for its report waits.
        member_.start_compute(port::ComputeKind::kLoadModel, out);
        break;
      }
      held_ = done.digest;
      note_state(port::ServeState::kLoading, out);
      member_.set_loaded(out);
      break;
    case port::ComputeKind::kVerify:
      if (member_.phase() != MemberPhase::kExecuting) break;
      if (done.outcome != Outcome::kOk) {
        member_.fail(done.outcome, {}, out);
        break;
      }
      landed_ = done.digest.low;
      received_ = done.extra;
      if (!serves_) {
        vote(out);
        break;
      }
      stage_ = Stage::kLocking;
      wants_write_ = true;
      out.tell(kServerSlot, WantWrite{member_.attempt().version});
      break;
    case port::ComputeKind::kApply:
    case port::ComputeKind::kApplyDelta:
      on_applied(done, out);
      break;
    case port::ComputeKind::kFence:
      on_fenced(done, out);
      break;
    default:  // A receiver starts no others.
      break;
  }
}

void UpdateReceiver::vote(Outbox& out) {
  stage_ = Stage::kVerifying;
  member_.meet({port::BatchKind::kSum, MeetingKind::kVerify, 0 - landed_, 0}, out);
}

void UpdateReceiver::on_applied(const port::ComputeDone& done, Outbox& out) {
  held_ = done.digest;
  written_ = done.count;
  tensors_ = done.total;
  if (member_.phase() != MemberPhase::kExecuting) return;
  if (done.outcome != Outcome::kOk) {
    member_.fail(done.outcome, {}, out);
    return;
  }
  stage_ = Stage::kFencing;
  member_.start_compute(port::ComputeKind::kFence, out);
}

void UpdateReceiver::on_fenced(const port::ComputeDone& done, Outbox& out) {
  if (member_.phase() != MemberPhase::kExecuting) return;
  held_ = done.digest;
  // A device that does not answer may still be writing: nobody may be told that the weights are there.
  if (done.outcome != Outcome::kOk) {
    member_.fail(done.outcome, {}, out);
    return;
  }
  const AttemptKey& attempt = member_.attempt();
  out.note(port::Applied{attempt.epoch, attempt.version, attempt.attempt, member_.rank(), member_.options().engine,
                         written_, tensors_, held_});
  stage_ = Stage::kFinishing;
  member_.meet({port::BatchKind::kBarrier, MeetingKind::kFinish, 0, 0}, out);
}

void UpdateReceiver::on_batch(const port::BatchDone& done, Outbox& out) {
  const AttemptKey& attempt = member_.attempt();
  switch (stage_) {
    case Stage::kVotingMode:
      stage_payload(done.value == 1 ? UpdateMode::kDelta : UpdateMode::kFull, out);
      break;
    case Stage::kLanding:
      if (member_.post_next(mode_, done.value, out)) break;
      stage_ = Stage::kChecking;
      member_.start_compute(port::ComputeKind::kVerify, out);
      break;
    case Stage::kVerifying:
      if (done.value != 0 || done.count != 0) {
        member_.fail(Outcome::kMismatch, {}, out);
        break;
      }
      stage_ = Stage::kApplying;
      quarantined_ = true;  // Until the commit.
      out.note(port::ApplyStarted{attempt.epoch, attempt.version, attempt.attempt, member_.rank(),
                                  member_.options().engine});
      member_.start_compute(mode_ == UpdateMode::kDelta ? port::ComputeKind::kApplyDelta : port::ComputeKind::kApply,
                            out);
      break;
    case Stage::kFinishing:
      stage_ = Stage::kNone;
      if (wants_write_) out.tell(kServerSlot, WriteEnded{attempt.version, true});
      wants_write_ = false;
      member_.release_staging(out);
      member_.succeed(received_, mode_, FullReason::kNone, out);
      break;
    case Stage::kNone:
    case Stage::kStaging:
    case Stage::kChecking:
    case Stage::kLocking:
    case Stage::kApplying:
    case Stage::kFencing:
      break;
  }
}

// The epoch is over. What was not committed is unproven, and so are the weights of an engine that lost a rank.
void UpdateReceiver::end(Outbox& out) {
  stage_ = Stage::kNone;
  const bool applied = quarantined_;
  if (member_.told_unproven()) quarantined_ = true;
  if (quarantined_) note_state(port::ServeState::kQuarantined, out);
  if (serves_ && wants_write_) out.tell(kServerSlot, WriteEnded{member_.version(), !applied});
  if (serves_ && quarantined_) out.tell(kServerSlot, WeightsUnproven{});
  wants_write_ = false;
  member_.finish_end(quarantined_, out);
}

void UpdateReceiver::list_waits(WaitList& waits) const {
  member_.list_waits(waits);
  if (stage_ == Stage::kLocking) waits.push_back({{}, "the engine's write lock", member_.attempt().version});
}

}  // namespace areal::proto
