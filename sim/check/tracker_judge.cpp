// Follows the tracker of every sender.
#include "sim/check/tracker_judge.h"

#include "sim/check/group_ids.h"

namespace areal::sim {

std::span<const KindId> TrackerJudge::interest() const {
  static constexpr std::array<KindId, 9> kWanted{
      port::CollectiveEntered::kKind,    port::PostBatch::kKind,  port::BatchDone::kKind,
      port::TrackerMoved::kKind,         port::DeltaVoted::kKind, port::UpdateEnded::kKind,
      port::TrainingWorldChanged::kKind, Incarnations::kStarted,  Incarnations::kChanged};
  if (!setup_->delta) return {};
  return kWanted;
}

void TrackerJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) trackers_.erase(*gone);
  if (record.kind == port::TrackerMoved::kKind) {
    on_moved(event, from_record<port::TrackerMoved>(record), out);
  } else if (record.kind == port::DeltaVoted::kKind) {
    on_voted(event, from_record<port::DeltaVoted>(record), out);
  } else if (record.kind == port::UpdateEnded::kKind) {
    on_ended(event, from_record<port::UpdateEnded>(record), out);
  } else if (record.kind == port::CollectiveEntered::kKind) {
    const JudgeNode* node = setup_->find(event.node);
    if (node == nullptr || node->train_rank == kNoRank) return;
    Tracker& tracker = trackers_[event.node];
    tracker.entered = key_of(from_record<port::CollectiveEntered>(record));
    tracker.barrier = {};
    tracker.met = false;
  } else if (record.kind == port::PostBatch::kKind) {
    const auto batch = from_record<port::PostBatch>(record);
    Tracker* tracker = trackers_.find(event.node);
    if (tracker == nullptr || batch.kind != port::BatchKind::kBarrier) return;
    if (batch.group == control_group_of(tracker->entered.epoch)) tracker->barrier = batch.batch;
  } else if (record.kind == port::BatchDone::kKind) {
    const auto done = from_record<port::BatchDone>(record);
    Tracker* tracker = trackers_.find(event.node);
    if (tracker == nullptr || tracker->barrier == BatchId{} || done.batch != tracker->barrier) return;
    const bool is_its_own = done.group == control_group_of(tracker->entered.epoch);
    if (is_its_own && done.outcome == port::Outcome::kOk) tracker->met = true;
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    for (auto& entry : trackers_) entry.value.seeded = false;
  }
}

void TrackerJudge::on_moved(const port::TraceEvent& event, const port::TrackerMoved& moved, Violations& out) {
  Tracker& tracker = trackers_[event.node];
  if (moved.base == 0) {  // It was emptied.
    tracker.seeded = false;
    return;
  }
  const bool stays = tracker.seeded && moved.base == tracker.base && moved.since_anchor == tracker.since;
  if (stays && moved.forced != port::FullReason::kNone) return;
  judge_move(event, moved, tracker, out);
  const AttemptKey key{moved.epoch, moved.base, moved.attempt};
  if (!tracker.met || tracker.entered != key) tracker.early = key;
  tracker.seeded = true;
  tracker.base = moved.base;
  tracker.since = moved.since_anchor;
  tracker.seq = event.seq;
}

void TrackerJudge::judge_move(const port::TraceEvent& event, const port::TrackerMoved& moved, const Tracker& tracker,
                              Violations& out) const {
  const auto blame = [&](InvariantId invariant, const std::string& why) {
    report(event, invariant, event.node, moved.base, tracker.seq, why, out);
  };
  const AttemptKey key{moved.epoch, moved.base, moved.attempt};
  if (tracker.entered != key) {
    blame(InvariantId::kDeltaCommit, say(" moved its tracker to version ", moved.base, " for attempt ", moved.attempt,
                                         " of epoch ", moved.epoch, ", which it is not in"));
  } else if (!tracker.met) {
    blame(InvariantId::kDeltaCommit, say(" moved its tracker to version ", moved.base, " before the final barrier"));
  }
  if (moved.mode == port::UpdateMode::kFull) {
    if (moved.since_anchor == 0) return;
    return blame(InvariantId::kDeltaCommit, say(" counts ", moved.since_anchor,
                                                " deltas since the full update to version ", moved.base, " itself"));
  }
  if (!tracker.seeded) {
    blame(InvariantId::kDeltaCommit,
          say(" moved its tracker to version ", moved.base, " with a delta, without a base"));
  } else if (moved.base != tracker.base + 1 || moved.since_anchor != tracker.since + 1) {
    blame(InvariantId::kDeltaCommit, say(" moved its tracker from version ", tracker.base, " (", tracker.since,
                                         " deltas) to ", moved.base, " (", moved.since_anchor, ") with one delta"));
  }
  const std::uint64_t interval = setup_->anchor_interval != 0 ? setup_->anchor_interval : moved.interval;
  if (interval == 0 || moved.since_anchor <= interval) return;
  blame(InvariantId::kInv5, say(" committed ", moved.since_anchor,
                                " deltas since the last full update; the anchor "
                                "interval is ",
                                interval));
}

void TrackerJudge::on_voted(const port::TraceEvent& event, const port::DeltaVoted& voted, Violations& out) const {
  const Tracker* tracker = trackers_.find(event.node);
  if (tracker == nullptr || !tracker->seeded || voted.base == 0) return;
  if (voted.base == tracker->base && voted.since_anchor == tracker->since) return;
  report(event, InvariantId::kDeltaCommit, event.node, voted.version, tracker->seq,
         say(" votes with base ", voted.base, " and ", voted.since_anchor, " deltas since; its tracker last moved to ",
             tracker->base, " and ", tracker->since),
         out);
}

void TrackerJudge::on_ended(const port::TraceEvent& event, const port::UpdateEnded& ended, Violations& out) const {
  if (ended.outcome == port::Outcome::kOk) return;
  for (const auto& [node, tracker] : trackers_) {
    if (tracker.early.epoch == 0 || tracker.early != key_of(ended)) continue;
    report(event, InvariantId::kInv5, node, ended.version, tracker.seq,
           say(" counts attempt ", ended.attempt, " of version ", ended.version, " in its tracker, and it failed (",
               to_text(ended.outcome), ")"),
           out);
  }
}

void TrackerJudge::report(const port::TraceEvent& event, InvariantId invariant, NodeId node, Version version,
                          std::uint64_t related, const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event, setup_->name_of(node) + why);
  found.node = node;
  found.version = version;
  if (related != 0) found.related.push_back(related);
  out.add(std::move(found));
}

}  // namespace areal::sim
