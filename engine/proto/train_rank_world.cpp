// The training world of a rank: it meets the others under a training epoch, and writes and reads back checkpoints.
#include <vector>

#include "engine/proto/train_rank.h"

namespace areal::proto {

void TrainRank::on_compute(const port::ComputeDone& done, Outbox& out) {
  if (running_.has_value() && running_->op == done.op) {
    if (running_->stage == StepStage::kGradients)
      on_gradients(done, out);
    else if (running_->stage == StepStage::kStepping)
      on_stepped(done, out);
  } else if (joining_.has_value() && joining_->stage == JoinStage::kRestoring && joining_->op == done.op) {
    on_restored(done, out);
  } else if (saving_.has_value() && saving_->op == done.op) {
    on_saved(done, out);
  }
}

// ---- Joining ----

void TrainRank::on(const port::MessageIn& message, const JoinTraining& join, Outbox& out) {
  if (message.from_slot != kTrainLoopSlot) {
    out.note(port::Refused{JoinTraining::kKind, Refusal::kUnknown, message.from, message.from_slot.value});
    return;
  }
  const RequestKey key = Callee::key_of(message);
  if (join.training_epoch < training_epoch_ || join.training_epoch == 0) {
    out.note(port::Refused{JoinTraining::kKind, Refusal::kStaleAttempt, message.from, join.training_epoch});
    loop_callee_.reply(key, TrainingJoined{join.training_epoch, Outcome::kRefused, {}}, out);
    return;
  }
  if (join.training_epoch == training_epoch_) {
    if (joining_.has_value())
      joining_->request = message.request;  // The asker gave up on the request before.
    else
      loop_callee_.reply(key, join_answer_, out);
    return;
  }
  drop_work(out);
  const bool aborts = joining_.has_value() && joining_->stage == JoinStage::kAborting;
  training_epoch_ = join.training_epoch;
  joining_ = RunningJoin{message.from, message.request, join, JoinStage::kAborting, OpId{}};
  if (group_ == 0) return restore(out);
  if (!aborts) out.push(port::AbortGroup{training_group(group_)});
}

// Operations of the device end one after the other: what is under way ends before the weights are read back, and
// nobody asks for its result any more.
void TrainRank::drop_work(Outbox& out) {
  if (running_.has_value()) end_step(Outcome::kAborted, out);
  if (saving_.has_value()) {
    const RunningSave save = *saving_;
    loop_callee_.reply({save.from, save.request},
                       CheckpointSaved{save.asked.training_epoch, save.asked.version, Outcome::kAborted, {}}, out);
  }
  if (joining_.has_value()) {
    loop_callee_.reply({joining_->from, joining_->request},
                       TrainingJoined{joining_->asked.training_epoch, Outcome::kAborted, {}}, out);
  }
  saving_.reset();
  saved_ = {};
  joined_ = made_ = false;
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  while (!held_.empty()) {
    const TrainBatchId batch = held_.begin()->key.batch;
    std::uint64_t count = 0;  // Of those that had come.
    held_.erase_if([&](const HeldKey& key, const HeldShard& held) {
      if (key.batch != batch) return false;
      if (held.state == HoldState::kHeld) ++count;
      return true;
    });
    out.note(port::ShardsDropped{batch, count, 0});
  }
}

void TrainRank::on_aborted(const port::GroupAborted& aborted, Outbox& out) {
  const bool awaited = joining_.has_value() && joining_->stage == JoinStage::kAborting && group_ != 0 &&
                       aborted.group == training_group(group_);
  if (!awaited) return;
  group_ = 0;
  restore(out);
}

void TrainRank::restore(Outbox& out) {
  const JoinTraining& asked = joining_->asked;
  if (asked.version == 0 && !replaced_) {
    version_ = 0;
    return meet(out);
  }
  const bool loads = asked.version == 0;
  joining_->stage = JoinStage::kRestoring;
  joining_->op = loads ? start(port::ComputeKind::kLoadModel, 0, 0, 0, out)
                       : start(port::ComputeKind::kLoadCheckpoint, asked.version, 0, asked.slot, out);
  replaced_ = true;
}

void TrainRank::on_restored(const port::ComputeDone& done, Outbox& out) {
  const JoinTraining asked = joining_->asked;
  if (done.outcome != Outcome::kOk) return end_join(done.outcome, out);
  version_ = asked.version;
  replaced_ = asked.version != 0;
  out.tell(kSenderSlot, WeightsReplaced{version_});
  if (asked.version != 0) {
    join_answer_.digest = done.digest;
    out.note(port::CheckpointRank{asked.training_epoch, asked.version, options_.rank, asked.slot, true, done.digest});
  }
  meet(out);
}

void TrainRank::meet(Outbox& out) {
  const JoinTraining& asked = joining_->asked;
  if (asked.version == 0) join_answer_.digest = {};
  joining_->stage = JoinStage::kMeeting;
  group_ = asked.training_epoch;
  out.push(
      port::JoinGroup{training_group(group_), port::Backend::kNccl, options_.rank, cluster_.train_world(), asked.port});
}

void TrainRank::on_joined(const port::GroupJoined& joined, Outbox& out) {
  const bool awaited = joining_.has_value() && joining_->stage == JoinStage::kMeeting && group_ != 0 &&
                       joined.group == training_group(group_);
  if (!awaited) return;
  joined_ = joined.outcome == Outcome::kOk;
  end_join(joined.outcome, out);
}

void TrainRank::end_join(Outcome outcome, Outbox& out) {
  const RunningJoin ended = *joining_;
  joining_.reset();
  join_answer_ = {ended.asked.training_epoch, outcome, outcome == Outcome::kOk ? join_answer_.digest : Digest128{}};
  loop_callee_.reply({ended.from, ended.request}, join_answer_, out);
}

void TrainRank::on(const port::MessageIn& message, const LeaveTraining& leave, Outbox& out) {
  const bool is_idle = joined_ && leave.training_epoch == training_epoch_ && !running_ && !saving_;
  if (is_idle && message.from_slot == kTrainLoopSlot) {
    out.push(port::LeaveGroup{training_group(group_)});
    joined_ = false;
    group_ = 0;
  }
  callee_of(message)->reply(Callee::key_of(message), Ack{}, out);
}

// ---- Checkpoints ----

void TrainRank::on(const port::MessageIn& message, const SaveCheckpoint& save, Outbox& out) {
  const RequestKey key = Callee::key_of(message);
  const auto refuse = [&](Refusal reason, Outcome outcome) {
    out.note(port::Refused{SaveCheckpoint::kKind, reason, message.from, save.version});
    loop_callee_.reply(key, CheckpointSaved{save.training_epoch, save.version, outcome, {}}, out);
  };
  if (message.from_slot != kTrainLoopSlot) {
    out.note(port::Refused{SaveCheckpoint::kKind, Refusal::kUnknown, message.from, message.from_slot.value});
    return;
  }
  if (!joined_ || save.training_epoch != training_epoch_) return refuse(Refusal::kWrongEpoch, Outcome::kRefused);
  if (saving_.has_value()) {
    if (saving_->asked.version != save.version) return refuse(Refusal::kBusy, Outcome::kRefused);
    saving_->request = message.request;  // The asker gave up on the request before.
    return;
  }
  if (running_.has_value()) return refuse(Refusal::kBusy, Outcome::kRefused);
  if (save.version == 0 || save.version != version_) return refuse(Refusal::kVersionOrder, Outcome::kMismatch);
  if (saved_.version == save.version) return loop_callee_.reply(key, saved_, out);
  const OpId op = start(port::ComputeKind::kSaveCheckpoint, save.version, 0, save.slot, out);
  saving_ = RunningSave{message.from, message.request, save, op};
}

void TrainRank::on_saved(const port::ComputeDone& done, Outbox& out) {
  const RunningSave save = *saving_;
  saving_.reset();
  const CheckpointSaved answer{save.asked.training_epoch, save.asked.version, done.outcome, done.digest};
  if (done.outcome == Outcome::kOk) {
    saved_ = answer;
    out.note(port::CheckpointRank{answer.training_epoch, answer.version, options_.rank, save.asked.slot, false,
                                  done.digest});
  }
  loop_callee_.reply({save.from, save.request}, answer, out);
}

}  // namespace areal::proto
