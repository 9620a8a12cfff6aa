// The second half of the rollout pool: finished groups are scored, stored and taken into training batches.
#include <algorithm>

#include "engine/proto/rollout_pool.h"

namespace areal::proto {

// All samples' tokens, in the order of the samples.
TokenRecord RolloutPool::record_of(SampleGroupId group) const {
  TokenRecord record;
  record.oldest = record.newest = static_cast<Version>(staleness_.version());  // Of a group without tokens.
  for (std::uint32_t index = 0; index < options_.samples; ++index) {
    record.add(samples_.find(SampleId{(group.value - 1) * options_.samples + index + 1})->record);
  }
  return record;
}

void RolloutPool::finish(SampleId sample, Outbox& out) {
  const SampleGroupId group = samples_.find(sample)->group;
  samples_.edit(sample, [](SampleTask& task) { task.phase = SamplePhase::kFinished; });
  groups_.edit(group, [](SampleGroup& changed) { --changed.unfinished; });
  if (groups_.find(group)->unfinished > 0) return;
  const TokenRecord record = record_of(group);
  for (std::uint32_t index = 0; index < options_.samples; ++index) {
    samples_.erase(SampleId{(group.value - 1) * options_.samples + index + 1});
  }
  groups_.edit(group, [&](SampleGroup& changed) {
    changed.phase = GroupPhase::kScoring;
    changed.record = record;
  });
  port::StartCompute reward{.op = OpId{group.value}, .what = port::ComputeKind::kReward};
  reward.seed = group.value;
  out.push(reward);
}

void RolloutPool::on_scored(const port::ComputeDone& done, Outbox& out) {
  const SampleGroupId group{done.op.value};
  const SampleGroup* scored = groups_.find(group);
  if (scored == nullptr || scored->phase != GroupPhase::kScoring || done.what != port::ComputeKind::kReward) return;
  const bool accepted = done.outcome == Outcome::kOk && done.count == 1;
  const TokenRecord& record = scored->record;
  out.note(port::GroupFinished{group, accepted, options_.samples, record.tokens, record.oldest, record.newest});
  if (!accepted) {
    staleness_.reject();
    groups_.erase(group);
    return;
  }
  staleness_.accept();
  groups_.edit(group, [](SampleGroup& changed) { changed.phase = GroupPhase::kStoring; });
  put_shard(group, out);
}

void RolloutPool::put_shard(SampleGroupId group, Outbox& out) {
  const TokenRecord& record = groups_.find(group)->record;
  shards_.ask(cluster_.store, kStoreSlot,
              PutShard{ShardId{group.value}, record.tokens * options_.token_bytes, record.digest}, out);
}

// Nobody else can keep a shard or train on it: what was not confirmed is asked for anew.
void RolloutPool::on_shard_answer(const PendingRequest& request, bool acknowledged, Outbox& out) {
  if (!acknowledged) {
    shards_.ask_record(request.to, request.slot, request.body, out);
  } else if (request.body.kind == PutShard::kKind) {
    const SampleGroupId group{from_record<PutShard>(request.body).shard.value};
    groups_.edit(group, [](SampleGroup& changed) { changed.phase = GroupPhase::kReady; });
    ready_.push(group);
    if (resetting_) return end_reset_if_stored(out);
    take_batch(out);
  } else if (--wanted_.unassigned == 0) {
    say_ready(out);
  }
}

void RolloutPool::on_want(const WantBatch& want, Outbox& out) {
  const bool delivered = wanted_.taken && wanted_.unassigned == 0;
  if (want.batch == wanted_.batch) {
    const bool is_lost = want.training_epoch > wanted_.training_epoch;  // The ranks dropped what they were assigned.
    wanted_.training_epoch = std::max(wanted_.training_epoch, want.training_epoch);
    if (is_lost && wanted_.taken) return assign_all(out);
    if (delivered) say_ready(out);
    return;
  }
  if (wanted_.batch != TrainBatchId{} && !delivered) {
    out.note(port::Refused{WantBatch::kKind, Refusal::kBusy, cluster_.controller, want.batch.value});
    return;
  }
  wanted_ = WantedBatch{};
  wanted_.batch = want.batch;
  wanted_.training_epoch = want.training_epoch;
  take_batch(out);
}

void RolloutPool::take_batch(Outbox& out) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, options_.limits.batch));
  if (wanted_.batch == TrainBatchId{} || wanted_.taken || ready_.size() < size) return;
  const auto version = static_cast<Version>(staleness_.version());
  wanted_.taken = true;
  for (std::size_t index = 0; index < size; ++index) {
    const SampleGroupId group = ready_.pop();
    const ShardId shard{group.value};
    const TokenRecord record = groups_.find(group)->record;
    groups_.erase(group);
    out.note(port::GroupConsumed{group, wanted_.batch, version, record.oldest});
    out.tell(kDrainSlot, DrainShard{wanted_.batch, shard});
    wanted_.digest = chain_digest(wanted_.digest, record.digest);
    ++wanted_.groups;
    wanted_.shards.push_back(shard);
  }
  assign_all(out);
}

// Round robin over the data heads, from the first one. Assignments of an earlier time are void.
void RolloutPool::assign_all(Outbox& out) {
  shards_.forget_if([](const PendingRequest& request) { return request.body.kind == AssignShard::kKind; }, out);
  wanted_.unassigned = 0;
  const std::size_t heads = cluster_.data_heads.size();
  for (std::size_t index = 0; heads != 0 && index < wanted_.shards.size(); ++index) {
    const NodeId head = cluster_.trainers[cluster_.data_heads[index % heads]];
    shards_.ask(head, kTrainRankSlot, AssignShard{wanted_.batch, wanted_.shards[index]}, out);
    ++wanted_.unassigned;
  }
  if (wanted_.unassigned == 0) say_ready(out);
}

void RolloutPool::say_ready(Outbox& out) const {
  out.tell(kTrainLoopSlot, BatchReady{wanted_.batch, wanted_.groups, wanted_.digest.low});
}

}  // namespace areal::proto
