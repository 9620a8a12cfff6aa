// Holds publication to the acknowledgements of all members.
#include "sim/check/publish_judge.h"

namespace areal::sim {

std::span<const KindId> PublishJudge::interest() const {
  static constexpr std::array<KindId, 6> kWanted{port::ComputeDone::kKind, port::CollectiveEntered::kKind,
                                                 port::Applied::kKind,     port::VersionPublished::kKind,
                                                 port::VersionSet::kKind,  port::TrainingWorldChanged::kKind};
  return kWanted;
}

void PublishJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::ComputeDone::kKind) {
    const auto done = from_record<port::ComputeDone>(record);
    if (applies(done.what)) members_[event.node].unfenced = true;
    if (done.what == port::ComputeKind::kFence && done.outcome == port::Outcome::kOk) {
      members_[event.node].unfenced = false;
    }
  } else if (record.kind == port::CollectiveEntered::kKind) {
    const auto entered = from_record<port::CollectiveEntered>(record);
    entered_seen_ = true;
    members_[event.node].entered = {entered.epoch, entered.version, entered.attempt};
  } else if (record.kind == port::Applied::kKind) {
    const auto applied = from_record<port::Applied>(record);
    Member& member = members_[event.node];
    member.applied = {applied.epoch, applied.version, applied.attempt};
    member.applied_unfenced = member.unfenced;
    member.applied_seq = event.seq;
  } else if (record.kind == port::VersionPublished::kKind) {
    on_published(event, from_record<port::VersionPublished>(record), out);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    published_ = std::min(published_, from_record<port::TrainingWorldChanged>(record).version);
  } else {
    const auto set = from_record<port::VersionSet>(record);
    // The trainer's own order of phases is INV-LOOP-ORDER.
    if (set.role == port::Role::kTrainer || set.version <= published_) return;
    Violation found = violation_at(InvariantId::kInv2, event,
                                   say(setup_->name_of(event.node), " uses version ", set.version,
                                       ", which was never published; the last published one is ", published_));
    found.version = set.version;
    out.add(std::move(found));
  }
}

std::string PublishJudge::lack_of(const JudgeNode& node, const Attempted& wanted, std::uint64_t* related) const {
  const Member* member = members_.find(node.id);
  if (node.infer_rank != kNoRank) {
    if (member == nullptr || member->applied != wanted) return node.name + " has not applied it";
    *related = member->applied_seq;
    if (member->applied_unfenced) return node.name + " reported it before its device fence";
  } else if (node.train_rank != kNoRank && entered_seen_) {
    if (member == nullptr || member->entered != wanted) return node.name + " has not entered its collectives";
  }
  return {};
}

void PublishJudge::on_published(const port::TraceEvent& event, const port::VersionPublished& published,
                                Violations& out) {
  published_ = std::max(published_, published.version);
  const Attempted wanted{published.epoch, published.version, published.attempt};
  for (const JudgeNode& node : setup_->nodes) {
    std::uint64_t seq = 0;
    const std::string lack = lack_of(node, wanted, &seq);
    if (lack.empty()) continue;
    Violation found = violation_at(InvariantId::kInv2, event,
                                   say(setup_->name_of(event.node), " published version ", published.version,
                                       " (attempt ", published.attempt, "), but ", lack));
    found.node = node.id;
    found.version = published.version;
    if (seq != 0) found.related.push_back(seq);
    out.add(std::move(found));
  }
}

}  // namespace areal::sim
