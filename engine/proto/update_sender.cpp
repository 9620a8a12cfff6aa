#include "engine/proto/update_sender.h"

namespace areal::proto {
namespace {

// Gradient buffers have numbers of their own, apart from those of the member's staging.
constexpr std::uint64_t kGradientBase = 1ULL << 41;
// How often memory that was given up is asked for again at once.
constexpr std::uint32_t kGradientTries = 8;

}  // namespace

UpdateSender::UpdateSender(MemberOptions options)
    : member_(std::move(options)), tracker_(member_.options().anchor_interval) {}

void UpdateSender::step(const Input& input, Outbox& out) {
  if (std::holds_alternative<port::Started>(input)) {
    member_.start_compute(port::ComputeKind::kLoadModel, out);
    return;
  }
  if (const auto* told = std::get_if<port::TellIn>(&input)) return on_tell(told->body);
  if (on_gradients(input, out)) return;
  using What = MemberEvent::What;
  const MemberEvent event = member_.on_input(input, out);
  switch (event.what) {
    case What::kNone:
    case What::kConnected:
      break;
    case What::kEntered:
      begin(out);
      break;
    case What::kStaged: {
      const bool delta = mode_ == UpdateMode::kDelta;
      stage_ = Stage::kPacking;
      member_.start_compute(delta ? port::ComputeKind::kPackDelta : port::ComputeKind::kPack, out);
      break;
    }
    case What::kCompute:
      on_compute(event.compute, out);
      break;
    case What::kBatch:
      on_batch(event.batch, out);
      break;
    case What::kCommit:
      commit(out);
      break;
    case What::kEnded:
      end(out);
      break;
  }
}

void UpdateSender::on_tell(const Record& body) {
  dispatch_record<StepMade>(body, [&](const StepMade& made) {
    if (member_.options().policies.records_rate(made.optimizer_steps)) rate_ = made.rate_used;
  });
  dispatch_record<WeightsReplaced>(body, [&](const WeightsReplaced&) {
    rate_ = port::kNoRate;
    tracker_.reset();
  });
}

// ---- Gradient memory ----

bool UpdateSender::on_gradients(const Input& input, Outbox& out) {
  if (const auto* ready = std::get_if<port::BufferReady>(&input); ready != nullptr && ready->buffer == gradients_) {
    if (ready->outcome != Outcome::kOk && ++gradient_tries_ < kGradientTries) {
      restore_gradients(out);
      return true;
    }
    gradients_move_ = false;
    gradients_held_ = ready->outcome == Outcome::kOk;
    if (gradients_held_) out.note(port::GradientsChanged{member_.options().role_rank, true});
    gradients_settled(out);
    return true;
  }
  if (const auto* gone = std::get_if<port::BufferReleased>(&input); gone != nullptr && gone->buffer == gradients_) {
    gradients_move_ = gradients_held_ = false;
    out.note(port::GradientsChanged{member_.options().role_rank, false});
    if (stage_ == Stage::kEnding) {
      restore_gradients(out);
    } else {
      gradients_settled(out);
    }
    return true;
  }
  return false;
}

void UpdateSender::give_up_gradients(Outbox& out) {
  stage_ = Stage::kGivingUpGradients;
  if (!gradients_held_) return gradients_settled(out);
  gradients_move_ = true;
  out.push(port::ReleaseBuffer{gradients_});
}

void UpdateSender::restore_gradients(Outbox& out) {
  gradients_move_ = true;
  gradients_ = BufferId{kGradientBase + ++next_gradients_};
  out.push(port::ReserveBuffer{gradients_, member_.options().gradient_bytes, port::MemoryTag::kGradients});
}

void UpdateSender::gradients_settled(Outbox& out) {
  gradient_tries_ = 0;
  switch (stage_) {
    case Stage::kGivingUpGradients:
      if (member_.phase() != MemberPhase::kExecuting) break;  // The end is on its way, and restores them.
      stage_ = Stage::kCapturing;
      if (member_.options().delta) {
        member_.start_compute(port::ComputeKind::kCapture, out);
      } else {
        own_ = member_.asked().reason;
        mode_ = UpdateMode::kFull;
        stage_ = Stage::kStaging;
        member_.reserve_staging(out);
      }
      break;
    case Stage::kRestoring:
      if (member_.phase() != MemberPhase::kExecuting) break;
      stage_ = Stage::kNone;
      if (gradients_held_) {
        member_.succeed(0, mode_, own_, out);
      } else {
        member_.fail(Outcome::kNoMemory, {}, out);
      }
      break;
    case Stage::kEnding:
      stage_ = Stage::kNone;
      if (!loaded_ && gradients_.value != 0) finish_loading(out);  // They were asked for when the model was there.
      member_.finish_end(false, out);
      break;
    default:  // They were first asked for: the model is loaded.
      if (!loaded_) finish_loading(out);
      break;
  }
}

void UpdateSender::finish_loading(Outbox& out) {
  loaded_ = true;
  member_.set_loaded(out);
}

// ---- Votes ----

void UpdateSender::begin(Outbox& out) {
  own_ = FullReason::kNone;
  captured_ = FullReason::kNone;
  known_ = packed_ = 0;
  mode_ = UpdateMode::kFull;
  give_up_gradients(out);
}

void UpdateSender::captured(const port::ComputeDone& done, Outbox& out) {
  if (done.outcome == Outcome::kMismatch) {  // Its weights are of another version: there is nothing right to send.
    member_.fail(done.outcome, {}, out);
    return;
  }
  known_ = done.count;
  if (done.outcome == Outcome::kRefused) captured_ = FullReason::kInversionInfeasible;
  if (done.outcome != Outcome::kOk && done.outcome != Outcome::kRefused) captured_ = FullReason::kInversionError;
  own_ = reason_to_be_full();
  vote(Stage::kVotingNeed, MeetingKind::kNeed, out);
}

FullReason UpdateSender::reason_to_be_full() const {
  const AttemptMode& asked = member_.asked();
  if (asked.mode == UpdateMode::kFull) return asked.reason;
  if (tracker_.reason() != FullReason::kNone) return tracker_.reason();
  // The versions must follow each other before anything moves, not only when it is counted.
  const bool follows = tracker_.base_version() == asked.base && member_.attempt().version == asked.base + 1;
  if (!follows) return FullReason::kBaseMismatch;
  if (captured_ != FullReason::kNone) return captured_;
  return known_ == 0 ? FullReason::kInitialFull : FullReason::kNone;
}

void UpdateSender::vote(Stage stage, MeetingKind meeting, Outbox& out) {
  stage_ = stage;
  const std::uint64_t wants_full = own_ != FullReason::kNone ? 1 : 0;
  member_.meet_trainers({port::BatchKind::kMax, meeting, wants_full, 0}, out);
}

void UpdateSender::voted(const port::BatchDone& done, Outbox& out) {
  if (done.value != 0 && own_ == FullReason::kNone) own_ = FullReason::kPeerRank;
  if (stage_ == Stage::kVotingMasks) return vote_mode(out);
  if (own_ != FullReason::kNone) return vote(Stage::kVotingMasks, MeetingKind::kMasks, out);
  stage_ = Stage::kReconstructing;
  reconstruct_.begin(rate_, member_, out);
}

void UpdateSender::reconstructed(Outbox& out) {
  own_ = reconstruct_.why();
  vote(Stage::kVotingMasks, MeetingKind::kMasks, out);
}

void UpdateSender::vote_mode(Outbox& out) {
  stage_ = Stage::kVotingMode;
  member_.meet({port::BatchKind::kMin, MeetingKind::kMode, own_ == FullReason::kNone ? 1U : 0U, 0}, out);
}

// ---- Payload ----

void UpdateSender::on_compute(const port::ComputeDone& done, Outbox& out) {
  if (done.what == port::ComputeKind::kLoadModel) {
    if (done.outcome != Outcome::kOk) {  // It holds nothing yet; whoever asks for its report waits.
      member_.start_compute(port::ComputeKind::kLoadModel, out);
      return;
    }
    restore_gradients(out);
    return;
  }
  if (done.what == port::ComputeKind::kMarkSynced) return committed(done, out);
  if (member_.phase() != MemberPhase::kExecuting) return;
  if (stage_ == Stage::kCapturing) {
    captured(done, out);
  } else if (stage_ == Stage::kReconstructing) {
    if (reconstruct_.on_compute(done, member_, out)) reconstructed(out);
  } else if (stage_ == Stage::kPacking) {
    packed(done, out);
  }
}

void UpdateSender::packed(const port::ComputeDone& done, Outbox& out) {
  if (done.outcome != Outcome::kOk) {
    member_.fail(done.outcome, {}, out);
    return;
  }
  const AttemptKey& attempt = member_.attempt();
  packed_ = done.total;
  // Of a delta too this says what the receivers should hold then.
  const std::uint64_t elements = mode_ == UpdateMode::kDelta ? 0 : done.count;
  out.note(port::Exported{attempt.epoch, attempt.version, attempt.attempt, member_.rank(), elements, done.digest});
  if (mode_ == UpdateMode::kDelta) {
    out.note(port::DeltaPacked{attempt.epoch, attempt.version, attempt.attempt, member_.options().role_rank, done.count,
                               done.extra});
  }
  stage_ = Stage::kSending;
  member_.post_next(mode_, 0, out);
}

void UpdateSender::on_batch(const port::BatchDone& done, Outbox& out) {
  const AttemptKey& attempt = member_.attempt();
  switch (stage_) {
    case Stage::kVotingNeed:
    case Stage::kVotingMasks:
      voted(done, out);
      break;
    case Stage::kReconstructing:
      reconstruct_.on_batch(done, member_, out);
      break;
    case Stage::kVotingMode:
      mode_ = done.value == 1 ? UpdateMode::kDelta : UpdateMode::kFull;
      if (mode_ == UpdateMode::kFull && own_ == FullReason::kNone) own_ = FullReason::kPeerRank;
      out.note(port::DeltaVoted{attempt.epoch, attempt.version, attempt.attempt, member_.options().role_rank, own_,
                                mode_, tracker_.base_version().value_or(0), tracker_.deltas_since_anchor()});
      count(CountMoment::kDecided, out);
      stage_ = Stage::kStaging;
      member_.reserve_staging(out);
      break;
    case Stage::kSending:
      if (member_.post_next(mode_, done.value, out)) break;
      count(CountMoment::kSent, out);
      stage_ = Stage::kVerifying;
      member_.meet({port::BatchKind::kSum, MeetingKind::kVerify, packed_, 0}, out);
      break;
    case Stage::kVerifying:
      if (done.value != 0 || done.count != 0) {
        member_.fail(Outcome::kMismatch, {}, out);
        break;
      }
      stage_ = Stage::kFinishing;
      member_.meet({port::BatchKind::kBarrier, MeetingKind::kFinish, 0, 0}, out);
      break;
    case Stage::kFinishing:
      stage_ = Stage::kRestoring;
      member_.release_staging(out);
      restore_gradients(out);
      break;
    default:
      break;
  }
}

// ---- Commit and end ----

// From now on the tracker says that receivers hold what the attempt moves.
void UpdateSender::count(CountMoment moment, Outbox& out) {
  if (!member_.options().delta || !member_.options().policies.counts(moment, mode_)) return;
  const Version version = member_.attempt().version;
  if (mode_ == UpdateMode::kFull) {
    tracker_.seed(version);
  } else if (!tracker_.mark_delta_committed(version)) {
    tracker_.request_full(FullReason::kCommitFailed);
  }
  note_tracker(FullReason::kNone, out);
}

void UpdateSender::commit(Outbox& out) {
  if (!member_.options().delta) return member_.commit(out);
  stage_ = Stage::kCommitting;
  member_.start_compute(port::ComputeKind::kMarkSynced, out);
}

void UpdateSender::committed(const port::ComputeDone& done, Outbox& out) {
  if (stage_ != Stage::kCommitting) return;
  stage_ = Stage::kNone;
  count(CountMoment::kCommitted, out);
  // What the receivers hold is right, but it is not on record: the next delta would start from something else.
  if (done.outcome != Outcome::kOk) tracker_.request_full(FullReason::kCommitFailed);
  member_.commit(out);
}

void UpdateSender::end(Outbox& out) {
  if (member_.options().delta && tracker_.is_seeded() && member_.options().policies.forgets()) {
    tracker_.request_full(FullReason::kPeerLost);
    note_tracker(FullReason::kPeerLost, out);
  }
  stage_ = Stage::kEnding;
  if (gradients_move_) return;  // It goes on when that has ended.
  if (gradients_held_ || !loaded_) {
    gradients_settled(out);
  } else {
    restore_gradients(out);
  }
}

void UpdateSender::note_tracker(FullReason forced, Outbox& out) const {
  const AttemptKey& attempt = member_.attempt();
  out.note(port::TrackerMoved{member_.options().role_rank, attempt.epoch, attempt.attempt, mode_,
                              tracker_.base_version().value_or(0), tracker_.deltas_since_anchor(),
                              member_.options().anchor_interval, forced});
}

void UpdateSender::list_waits(WaitList& waits) const { member_.list_waits(waits); }

}  // namespace areal::proto
