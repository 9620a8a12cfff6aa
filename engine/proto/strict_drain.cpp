#include "engine/proto/strict_drain.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::proto {

StrictDrain::StrictDrain(const StrictDrainOptions& options, ClusterMap cluster)
    : cluster_(std::move(cluster)), collected_(options.shard_limit), calls_(options.calls) {}

void StrictDrain::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    calls_.start(started->incarnation);
  } else if (const auto* told = std::get_if<port::TellIn>(&input)) {
    const bool known =
        dispatch_record<DrainShard, ClearBatch>(told->body, [&](const auto& body) { on(*told, body, out); });
    if (!known) out.note(port::Refused{told->body.kind, Refusal::kUnknown, cluster_.controller, 0});
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    if (const auto asked = calls_.answered(*message, out); asked.has_value()) on_answer(*asked, message->body, out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    const Caller::FiredResult result = calls_.on_timer(*fired, out);
    if (result.what == Caller::Fired::kGaveUp) fail(Outcome::kTimedOut, out);
  }
  AREAL_CHECK(phase_ != DrainPhase::kIdle || calls_.pending().empty());
  AREAL_CHECK(phase_ == DrainPhase::kIdle || !calls_.pending().empty());
}

void StrictDrain::on(const port::TellIn& /*told*/, const DrainShard& drain, Outbox& out) {
  const DrainKey key{drain.batch, drain.shard};
  const bool is_being_drained = phase_ != DrainPhase::kIdle && drain.batch == batch_;
  if (collected_.contains(key)) return;
  if (is_being_drained || !collected_.insert(key, true)) {
    out.note(port::Refused{DrainShard::kKind, Refusal::kBusy, cluster_.controller, drain.shard.value});
  }
}

void StrictDrain::on(const port::TellIn& told, const ClearBatch& clear, Outbox& out) {
  if (phase_ != DrainPhase::kIdle) {
    if (clear.batch == batch_) return;  // Its answer will come.
    out.note(port::Refused{ClearBatch::kKind, Refusal::kBusy, cluster_.controller, clear.batch.value});
    out.tell(told.from_slot, BatchCleared{clear.batch, Outcome::kRefused});
    return;
  }
  batch_ = clear.batch;
  client_ = told.from_slot;
  shards_.clear();
  sourced_ = 0;
  holding_heads_ = 0;
  for (const auto& entry : collected_) {
    if (entry.key.batch == batch_) shards_.push_back(entry.key.shard);
  }
  if (shards_.empty()) return succeed(out);
  phase_ = DrainPhase::kSources;
  drop_next(out);
}

// One at a time and in order, so that the first failure is the last thing that happened.
void StrictDrain::drop_next(Outbox& out) {
  if (sourced_ == shards_.size()) return ask_heads(DrainPhase::kConsumers, DropBatch{batch_}, out);
  calls_.ask(cluster_.store, kStoreSlot, DropShard{shards_[sourced_], batch_}, out);
}

template <RecordType T>
void StrictDrain::ask_heads(DrainPhase phase, const T& body, Outbox& out) {
  if (cluster_.data_heads.empty()) return succeed(out);
  phase_ = phase;
  for (const std::uint32_t head : cluster_.data_heads) {
    calls_.ask(cluster_.trainers[head], kTrainRankSlot, body, out);
  }
}

void StrictDrain::on_answer(const PendingRequest& asked, const Record& body, Outbox& out) {
  bool fits = false;
  if (phase_ == DrainPhase::kStats) {
    dispatch_record<BatchStats>(body, [&](const BatchStats& stats) {
      fits = stats.batch == batch_;
      if (!fits || stats.matching == 0) return;
      ++holding_heads_;
      out.note(port::Refused{QueryBatch::kKind, Refusal::kUnsynced, asked.to, stats.matching});
    });
  } else {
    dispatch_record<Dropped>(body, [&](const Dropped& dropped) { fits = dropped.batch == batch_; });
  }
  if (!fits) {
    out.note(port::Refused{body.kind, Refusal::kUnknown, asked.to, batch_.value});
    return fail(Outcome::kMismatch, out);
  }
  if (phase_ == DrainPhase::kSources) {
    ++sourced_;
    return drop_next(out);
  }
  end_phase_if_answered(out);
}

void StrictDrain::end_phase_if_answered(Outbox& out) {
  if (!calls_.pending().empty()) return;
  if (phase_ == DrainPhase::kConsumers) return ask_heads(DrainPhase::kStats, QueryBatch{batch_}, out);
  if (holding_heads_ != 0) return fail(Outcome::kFailed, out);
  succeed(out);
}

void StrictDrain::succeed(Outbox& out) {
  std::vector<std::uint64_t> ids;
  for (const ShardId shard : shards_) ids.push_back(shard.value);
  const std::uint64_t sources = shards_.empty() ? 0 : 1;
  const std::uint64_t heads = shards_.empty() ? 0 : cluster_.data_heads.size();
  out.note(port::Receipt{port::ReceiptKind::kDrain, batch_.value, Role::kTrainer, shards_.size(), sources + heads,
                         hash_words(ids)});
  collected_.erase_if([&](const DrainKey& key, bool) { return key.batch == batch_; });
  end(Outcome::kOk, out);
}

void StrictDrain::fail(Outcome outcome, Outbox& out) {
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  end(outcome, out);
}

void StrictDrain::end(Outcome outcome, Outbox& out) {
  phase_ = DrainPhase::kIdle;
  shards_.clear();
  out.tell(client_, BatchCleared{batch_, outcome});
}

void StrictDrain::list_waits(WaitList& waits) const {
  for (const auto& entry : calls_.pending()) {
    const std::string_view what = phase_ == DrainPhase::kSources     ? "reply to drop_shard"
                                  : phase_ == DrainPhase::kConsumers ? "reply to drop_batch"
                                                                     : "reply to query_batch";
    waits.push_back({entry.value.to, what, batch_.value});
  }
}

}  // namespace areal::proto
