#include "engine/proto/update_sender.h"

namespace areal::proto {

void UpdateSender::step(const Input& input, Outbox& out) {
  if (std::holds_alternative<port::Started>(input)) {
    member_.start_compute(port::ComputeKind::kLoadModel, out);
    return;
  }
  using What = MemberEvent::What;
  const MemberEvent event = member_.on_input(input, out);
  switch (event.what) {
    case What::kNone:
      break;
    case What::kEntered:
      stage_ = Stage::kPacking;
      member_.reserve_staging(out);
      break;
    case What::kStaged:
      member_.start_compute(port::ComputeKind::kPack, out);
      break;
    case What::kCompute:
      on_compute(event.compute, out);
      break;
    case What::kBatch:
      on_batch(event.batch, out);
      break;
    case What::kCommit:
      member_.commit(out);
      break;
    case What::kConnected:
      break;
    case What::kEnded:
      stage_ = Stage::kNone;
      member_.finish_end(false, out);
      break;
  }
}

void UpdateSender::on_compute(const port::ComputeDone& done, Outbox& out) {
  if (done.what == port::ComputeKind::kLoadModel) {
    if (done.outcome != Outcome::kOk) {  // It holds nothing yet; whoever asks for its report waits.
      member_.start_compute(port::ComputeKind::kLoadModel, out);
      return;
    }
    member_.set_loaded(out);
    return;
  }
  if (done.what != port::ComputeKind::kPack || member_.phase() != MemberPhase::kExecuting) return;
  if (done.outcome != Outcome::kOk) {
    member_.fail(done.outcome, {}, out);
    return;
  }
  const AttemptKey& attempt = member_.attempt();
  packed_ = done.digest.low;
  out.note(port::Exported{attempt.epoch, attempt.version, attempt.attempt, member_.rank(), done.count, done.digest});
  stage_ = Stage::kSending;
  member_.post_pass(out);
}

void UpdateSender::on_batch(const port::BatchDone& done, Outbox& out) {
  switch (stage_) {
    case Stage::kNone:
    case Stage::kPacking:
      break;
    case Stage::kSending:
      if (member_.post_pass(out)) break;
      stage_ = Stage::kVerifying;
      member_.meet(port::BatchKind::kSum, MeetingKind::kVerify, packed_, 0, out);
      break;
    case Stage::kVerifying:
      if (done.value != 0 || done.count != 0) {
        member_.fail(Outcome::kMismatch, {}, out);
        break;
      }
      stage_ = Stage::kFinishing;
      member_.meet(port::BatchKind::kBarrier, MeetingKind::kFinish, 0, 0, out);
      break;
    case Stage::kFinishing:
      stage_ = Stage::kNone;
      member_.release_staging(out);
      member_.succeed(0, out);
      break;
  }
}

}  // namespace areal::proto
