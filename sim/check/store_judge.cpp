// Follows shards from their makers to their consumers and out of the world.
#include "sim/check/store_judge.h"

namespace areal::sim {

std::span<const KindId> StoreJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::ShardStored::kKind,  port::ShardFetched::kKind,         port::ShardsDropped::kKind, port::Receipt::kKind,
      port::PhaseEntered::kKind, port::TrainingWorldChanged::kKind, Incarnations::kStarted,     Incarnations::kChanged};
  return kWanted;
}

void StoreJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) forget(*gone);
  if (record.kind == port::ShardStored::kKind) {
    on_stored(event, from_record<port::ShardStored>(record).shard);
  } else if (record.kind == port::ShardFetched::kKind) {
    on_fetched(event, from_record<port::ShardFetched>(record));
  } else if (record.kind == port::ShardsDropped::kKind) {
    on_dropped(event, from_record<port::ShardsDropped>(record));
  } else if (record.kind == port::Receipt::kKind) {
    on_receipt(event, from_record<port::Receipt>(record), out);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    forget_batches();
  } else if (record.kind == port::PhaseEntered::kKind) {
    // The clearing of a step is over when it resumes.
    const auto phase = from_record<port::PhaseEntered>(record);
    if (phase.phase != port::LoopPhase::kResume) return;
    judge_leaks(event, phase.step, out);
    holdings_.erase_if([](const Place&, const Holding& holding) { return holding.clear; });
  }
}

void StoreJudge::forget(NodeId node) {
  for (auto& entry : holdings_) {
    if (entry.key.second != node) continue;
    entry.value.incomplete = true;
    entry.value.clear = true;
  }
  const std::size_t before = shards_.size();
  shards_.erase_if([&](ShardId, const Stored& stored) { return stored.node == node; });
  lost_ += before - shards_.size();
}

void StoreJudge::forget_batches() {
  for (auto& entry : holdings_) entry.value.incomplete = entry.value.clear = true;
}

void StoreJudge::on_stored(const port::TraceEvent& event, ShardId shard) {
  ++stored_;
  shards_[shard] = {event.node, {}};
}

void StoreJudge::on_fetched(const port::TraceEvent& event, const port::ShardFetched& fetched) {
  Holding& consumer = holdings_[{fetched.batch, event.node}];
  ++consumer.fetched;
  consumer.clear = false;
  consumer.seq = event.seq;
  Stored* stored = shards_.find(fetched.shard);
  if (stored == nullptr || stored->counted == fetched.batch) return;
  stored->counted = fetched.batch;
  Holding& maker = holdings_[{fetched.batch, stored->node}];
  ++maker.stored;
  maker.clear = false;
  maker.seq = event.seq;
}

void StoreJudge::on_dropped(const port::TraceEvent& event, const port::ShardsDropped& dropped) {
  Holding& holding = holdings_[{dropped.batch, event.node}];
  holding.dropped += dropped.count;
  holding.clear = dropped.left == 0;
  holding.seq = event.seq;
  if (holding.fetched == 0) drained_ += dropped.count;
}

void StoreJudge::on_receipt(const port::TraceEvent& event, const port::Receipt& receipt, Violations& out) {
  if (receipt.kind != port::ReceiptKind::kDrain) return;
  const TrainBatchId batch{receipt.subject};
  for (const auto& [place, holding] : holdings_) {
    if (place.first != batch || holding.clear) continue;
    Violation found = violation_at(InvariantId::kRtReceipt, event,
                                   say(setup_->name_of(event.node), " gave a receipt for batch ", batch, ", but ",
                                       setup_->name_of(place.second), " still holds shards of it"));
    found.node = place.second;
    found.related.push_back(holding.seq);
    out.add(std::move(found));
  }
  judge_balance(event, receipt, out);
}

void StoreJudge::judge_balance(const port::TraceEvent& event, const port::Receipt& receipt, Violations& out) const {
  const TrainBatchId batch{receipt.subject};
  for (const auto& [place, holding] : holdings_) {
    if (place.first != batch || holding.incomplete) continue;
    // A maker may drop shards of the batch that nobody fetched; who both made and fetched counts a shard once or twice.
    const std::uint64_t least = std::max(holding.fetched, holding.stored);
    const bool only_fetched = holding.stored == 0 && holding.fetched > 0;
    if (holding.dropped >= least && (!only_fetched || holding.dropped == holding.fetched)) continue;
    Violation found = violation_at(InvariantId::kInv14, event,
                                   say(setup_->name_of(place.second), " held ", least, " shards of batch ", batch,
                                       " and dropped ", holding.dropped));
    found.node = place.second;
    found.related.push_back(holding.seq);
    out.add(std::move(found));
  }
}

void StoreJudge::judge_leaks(const port::TraceEvent& event, std::uint64_t step, Violations& out) const {
  for (const auto& [place, holding] : holdings_) {
    if (holding.clear) continue;
    Violation found = violation_at(InvariantId::kRtLeak, event,
                                   say(setup_->name_of(place.second), " still holds shards of batch ", place.first,
                                       " after the clearing of step ", step));
    found.node = place.second;
    found.step = step;
    found.related.push_back(holding.seq);
    out.add(std::move(found));
  }
}

void StoreJudge::at_end(bool finished, Violations& out) {
  if (!finished || drained_ <= stored_) return;
  Violation found;
  found.invariant = InvariantId::kInv14;
  found.message = say(stored_, " shards were stored, but ", drained_, " were dropped by those who stored them");
  out.add(std::move(found));
}

void StoreJudge::measure(std::vector<Measure>& out) const {
  out.push_back({"shards stored", stored_});
  out.push_back({"shards drained", drained_});
  out.push_back({"shards lost with a process", lost_});
  out.push_back({"shards carried over", stored_ - std::min(stored_, drained_ + lost_)});
}

}  // namespace areal::sim
