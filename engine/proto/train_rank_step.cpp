// The steps of a training rank: shards, gradients, the norm that all ranks reduce, the optimizer.
#include "engine/proto/train_rank.h"

namespace areal::proto {
namespace {

constexpr TimerId kShardsTimer{1};

}  // namespace

void TrainRank::on(const port::MessageIn& message, const TrainStep& train, Outbox& out) {
  const auto answer = [&](Outcome outcome) {
    loop_callee_.reply(Callee::key_of(message), StepDone{train.step, train.version, outcome}, out);
  };
  const auto refuse = [&](Refusal reason, std::uint64_t detail, Outcome outcome) {
    out.note(port::Refused{TrainStep::kKind, reason, message.from, detail});
    answer(outcome);
  };
  if (message.from_slot != kTrainLoopSlot) {
    out.note(port::Refused{TrainStep::kKind, Refusal::kUnknown, message.from, message.from_slot.value});
    return;
  }
  if (!joined_ || train.training_epoch != training_epoch_) {
    return refuse(Refusal::kWrongEpoch, train.training_epoch, Outcome::kRefused);
  }
  if (running_.has_value()) {
    const bool same = running_->asked.version == train.version && running_->asked.seed == train.seed;
    if (!same) return refuse(Refusal::kBusy, train.version, Outcome::kRefused);
    running_->request = message.request;  // The asker gave up on the request before.
    return;
  }
  if (made_ && train.version == version_ && train.seed == seed_) return answer(Outcome::kOk);
  if (train.version != version_ + 1) return refuse(Refusal::kVersionOrder, train.version, Outcome::kMismatch);
  running_ = RunningStep{message.from, message.request, train, StepStage::kShards, OpId{}, BatchId{}};
  out.push(port::ArmTimer{kShardsTimer, options_.shards_timeout});
  begin_if_ready(out);
}

OpId TrainRank::start(port::ComputeKind what, Version version, std::uint64_t seed, std::uint64_t amount, Outbox& out) {
  port::StartCompute compute;
  compute.op = OpId{++last_op_};
  compute.what = what;
  compute.version = version;
  compute.seed = seed;
  compute.amount = amount;
  out.push(compute);
  return compute.op;
}

void TrainRank::begin_if_ready(Outbox& out) {
  if (!running_.has_value() || running_->stage != StepStage::kShards) return;
  std::uint64_t fetched = 0;
  for (const auto& [key, held] : held_) {
    if (key.batch != running_->asked.batch) continue;
    if (held.state == HoldState::kMissing) return end_step(Outcome::kFailed, out);
    if (held.state == HoldState::kHeld) ++fetched;
  }
  if (fetched < running_->asked.shards) return;
  out.push(port::DisarmTimer{kShardsTimer});
  running_->stage = StepStage::kGradients;
  running_->op = start(port::ComputeKind::kGradients, running_->asked.version, running_->asked.seed, 0, out);
}

void TrainRank::on_gradients(const port::ComputeDone& done, Outbox& out) {
  if (done.outcome != Outcome::kOk) return end_step(done.outcome, out);
  if (!reduces_(running_->asked.shards)) return make_step(done.count, out);
  running_->stage = StepStage::kReducing;
  running_->batch = BatchId{++last_batch_};
  out.push(port::PostBatch{.group = training_group(training_epoch_),
                           .batch = running_->batch,
                           .kind = port::BatchKind::kReduce,
                           .tag = norm_tag(running_->asked.version),
                           .version = running_->asked.version,
                           .dtype = DType::kF32,
                           .storage_dtype = DType::kF32,
                           .elements = 1,
                           .bytes = size_of(DType::kF32),
                           .value = done.total,
                           .count = done.count});
}

void TrainRank::on_reduced(const port::BatchDone& done, Outbox& out) {
  const bool awaited = running_.has_value() && running_->stage == StepStage::kReducing &&
                       done.group == training_group(training_epoch_) && done.batch == running_->batch;
  if (!awaited) return;  // Of a step that was dropped.
  if (done.outcome != Outcome::kOk) return end_step(done.outcome, out);
  make_step(done.count, out);
}

// An overflow anywhere skips the step everywhere: weights, moments and step counters stay as they are.
void TrainRank::make_step(std::uint64_t not_finite, Outbox& out) {
  running_->stage = StepStage::kStepping;
  running_->op = start(port::ComputeKind::kTrainStep, running_->asked.version, running_->asked.seed,
                       not_finite == 0 ? options_.minibatches : 0, out);
  replaced_ = true;  // Also if it fails half-way.
}

void TrainRank::on_stepped(const port::ComputeDone& done, Outbox& out) {
  if (done.outcome == Outcome::kOk) {
    const TrainStep& made = running_->asked;
    version_ = made.version;
    made_ = true;
    seed_ = made.seed;
    out.note(port::StepTrained{made.step, made.version, options_.rank, done.digest, done.count});
    out.tell(kSenderSlot, StepMade{made.version, done.count, done.total, done.extra});
  }
  end_step(done.outcome, out);
}

void TrainRank::end_step(Outcome outcome, Outbox& out) {
  const RunningStep ended = *running_;
  running_.reset();
  if (ended.stage == StepStage::kShards) out.push(port::DisarmTimer{kShardsTimer});
  loop_callee_.reply({ended.from, ended.request}, StepDone{ended.asked.step, ended.asked.version, outcome}, out);
}

}  // namespace areal::proto
