#include "engine/proto/train_rank.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::proto {
namespace {

constexpr TimerId kShardsTimer{1};

}  // namespace

TrainRank::TrainRank(TrainRankOptions options, ClusterMap cluster, ReducePolicy reduces)
    : options_(options),
      cluster_(std::move(cluster)),
      reduces_(reduces),
      held_(options.shard_limit),
      calls_(options.calls) {}

void TrainRank::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    calls_.start(started->incarnation);
    last_op_ = std::max(last_op_, std::uint64_t{started->incarnation} << 32);
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    on_message(*message, out);
  } else if (const auto* done = std::get_if<port::ComputeDone>(&input)) {
    on_compute(*done, out);
  } else if (const auto* reduced = std::get_if<port::BatchDone>(&input)) {
    on_reduced(*reduced, out);
  } else if (const auto* joined = std::get_if<port::GroupJoined>(&input)) {
    on_joined(*joined, out);
  } else if (const auto* aborted = std::get_if<port::GroupAborted>(&input)) {
    on_aborted(*aborted, out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    on_timer(*fired, out);
  }
  check_invariants();
}

void TrainRank::check_invariants() const {
  AREAL_CHECK(!running_.has_value() || joined_);
  AREAL_CHECK(!saving_.has_value() || joined_);
  AREAL_CHECK(!joined_ || !joining_.has_value());
  AREAL_CHECK(!joined_ || group_ == training_epoch_);
}

void TrainRank::on_message(const port::MessageIn& message, Outbox& out) {
  if (message.kind == port::MessageKind::kReply) {
    if (const auto asked = calls_.answered(message, out); asked.has_value()) on_shard(*asked, message.body, out);
    return;
  }
  Callee* callee = callee_of(message);
  if (callee == nullptr) {
    out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, message.from_slot.value});
    return;
  }
  if (!callee->admit(message, out)) return;
  const bool known =
      dispatch_record<AssignShard, TrainStep, SetVersion, DropBatch, QueryBatch, JoinTraining, SaveCheckpoint,
                      LeaveTraining>(message.body, [&](const auto& body) { on(message, body, out); });
  if (!known) out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, 0});
}

Callee* TrainRank::callee_of(const port::MessageIn& message) {
  if (message.from != cluster_.controller) return nullptr;
  if (message.from_slot == kTrainLoopSlot) return &loop_callee_;
  if (message.from_slot == kPoolSlot) return &pool_callee_;
  if (message.from_slot == kDrainSlot) return &drain_callee_;
  return nullptr;
}

// ---- Shards ----

void TrainRank::on(const port::MessageIn& message, const AssignShard& assign, Outbox& out) {
  const HeldKey key{assign.batch, assign.shard};
  if (!is_data_head()) {
    out.note(port::Refused{AssignShard::kKind, Refusal::kRankMap, message.from, options_.rank});
    return;
  }
  if (assign.batch <= dropped_) {
    out.note(port::Refused{AssignShard::kKind, Refusal::kStaleAttempt, message.from, assign.batch.value});
    return;
  }
  if (!held_.contains(key)) {
    const bool has_room = calls_.pending().size() < options_.calls.limit && held_.insert(key, HeldShard{});
    if (!has_room) {
      out.note(port::Refused{AssignShard::kKind, Refusal::kBusy, message.from, assign.shard.value});
      return;
    }
    calls_.ask(cluster_.store, kStoreSlot, FetchShard{assign.shard, assign.batch}, out);
  }
  callee_of(message)->reply(Callee::key_of(message), Ack{}, out);
}

void TrainRank::on_shard(const PendingRequest& asked, const Record& body, Outbox& out) {
  const FetchShard fetch = from_record<FetchShard>(asked.body);
  HeldShard result{HoldState::kMissing, 0, {}};
  dispatch_record<ShardData>(body, [&](const ShardData& data) {
    if (data.outcome == Outcome::kOk && data.shard == fetch.shard) result = {HoldState::kHeld, data.bytes, data.digest};
  });
  held_.edit({fetch.batch, fetch.shard}, [&](HeldShard& held) { held = result; });
  if (result.state == HoldState::kHeld) out.note(port::ShardFetched{fetch.shard, fetch.batch});
  begin_if_ready(out);
}

void TrainRank::on(const port::MessageIn& message, const DropBatch& drop, Outbox& out) {
  calls_.forget_if([&](const PendingRequest& asked) { return from_record<FetchShard>(asked.body).batch == drop.batch; },
                   out);
  std::uint64_t count = 0;  // Of those that had come.
  held_.erase_if([&](const HeldKey& key, const HeldShard& held) {
    if (key.batch != drop.batch) return false;
    if (held.state == HoldState::kHeld) ++count;
    return true;
  });
  dropped_ = std::max(dropped_, drop.batch);
  out.note(port::ShardsDropped{drop.batch, count, count_of(drop.batch)});
  callee_of(message)->reply(Callee::key_of(message), Dropped{drop.batch, count}, out);
}

void TrainRank::on(const port::MessageIn& message, const QueryBatch& query, Outbox& out) {
  callee_of(message)->reply(Callee::key_of(message), BatchStats{query.batch, count_of(query.batch)}, out);
}

std::uint64_t TrainRank::count_of(TrainBatchId batch) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(held_, [&](const auto& entry) { return entry.key.batch == batch; }));
}

bool TrainRank::is_data_head() const {
  return std::ranges::find(cluster_.data_heads, options_.rank) != cluster_.data_heads.end();
}

void TrainRank::on(const port::MessageIn& message, const SetVersion& /*set*/, Outbox& out) {
  callee_of(message)->reply(Callee::key_of(message), Ack{}, out);
}

// ---- Common ----

void TrainRank::on_timer(const port::TimerFired& fired, Outbox& out) {
  if (fired.timer == kShardsTimer) {
    if (running_.has_value() && running_->stage == StepStage::kShards) end_step(Outcome::kTimedOut, out);
    return;
  }
  const Caller::FiredResult result = calls_.on_timer(fired, out);
  if (result.what == Caller::Fired::kGaveUp) on_shard(result.request, Record{}, out);
}

void TrainRank::list_waits(WaitList& waits) const {
  for (const auto& entry : calls_.pending()) {
    waits.push_back({entry.value.to, "shard data", from_record<FetchShard>(entry.value.body).shard.value});
  }
  if (joining_.has_value()) waits.push_back({NodeId{}, to_text(joining_->stage), joining_->asked.training_epoch});
  if (saving_.has_value()) waits.push_back({NodeId{}, "checkpoint to be written", saving_->asked.version});
  if (!running_.has_value()) return;
  const bool for_shards = running_->stage == StepStage::kShards;
  waits.push_back({for_shards ? cluster_.store : NodeId{}, to_text(running_->stage), running_->asked.version});
}

}  // namespace areal::proto
