// The third part of the rollout pool: training goes on from an earlier version, and what was made for later ones is
// void.
#include <algorithm>
#include <vector>

#include "engine/proto/rollout_pool.h"

namespace areal::proto {
namespace {

constexpr TimerId kRouteRetry{1};

}  // namespace

// What was under way before is waited for no more, but a shard that the store is being given: it must not come after
// it was dropped.
void RolloutPool::on_reset(const ResetPool& reset, Outbox& out) {
  const auto all = [](const PendingRequest&) { return true; };
  routes_.forget_if(all, out);
  generates_.forget_if(all, out);
  shards_.forget_if([](const PendingRequest& request) { return request.body.kind == AssignShard::kKind; }, out);
  late_.clear();
  if (retry_armed_) out.push(port::DisarmTimer{kRouteRetry});
  retry_armed_ = false;
  refused_rounds_ = 0;
  reject_unfinished(out);
  wanted_ = WantedBatch{};
  staleness_.recover(static_cast<std::int64_t>(reset.version), recovered_);
  knows_version_ = true;
  resetting_ = reset;
  end_reset_if_stored(out);
}

void RolloutPool::reject_unfinished(Outbox& out) {
  std::vector<SampleGroupId> unfinished;
  for (const auto& [group, value] : groups_) {
    if (value.phase == GroupPhase::kSampling || value.phase == GroupPhase::kScoring) unfinished.push_back(group);
  }
  for (const SampleGroupId group : unfinished) {
    const SampleGroup& found = *groups_.find(group);
    const TokenRecord record = found.phase == GroupPhase::kSampling ? record_of(group) : found.record;
    out.note(port::GroupFinished{group, false, options_.samples, record.tokens, record.oldest, record.newest});
    staleness_.reject();
    groups_.erase(group);
  }
  samples_.clear();
}

void RolloutPool::end_reset_if_stored(Outbox& out) {
  if (!shards_.pending().empty()) return;
  drop_stored(out);
  out.tell(kTrainLoopSlot, PoolReset{resetting_->version});
  resetting_.reset();
}

// No batch will take them: the drain does not learn of them in any other way.
void RolloutPool::drop_stored(Outbox& out) {
  while (!ready_.empty()) {
    const SampleGroupId group = ready_.pop();
    AREAL_CHECK(groups_.erase(group));
    out.tell(kDrainSlot, DrainShard{resetting_->batch, ShardId{group.value}});
  }
  AREAL_CHECK(groups_.empty());
}

}  // namespace areal::proto
