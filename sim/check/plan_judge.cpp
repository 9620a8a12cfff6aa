// Compares the plans of all ranks of an epoch.
#include "sim/check/plan_judge.h"

namespace areal::sim {

std::span<const KindId> PlanJudge::interest() const {
  static constexpr std::array<KindId, 4> kWanted{port::PlanBuilt::kKind, port::PlanPeer::kKind,
                                                 port::PairChanged::kKind, port::CollectiveEntered::kKind};
  return kWanted;
}

bool PlanJudge::Between::differ() const {
  return sender.peer.digest != receiver.peer.digest || sender.peer.operations != receiver.peer.operations ||
         sender.peer.elements != receiver.peer.elements || sender.peer.bytes != receiver.peer.bytes;
}

void PlanJudge::start_epoch(Epoch epoch) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  built_.clear();
  peers_.clear();
}

void PlanJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::PlanBuilt::kKind) {
    const auto plan = from_record<port::PlanBuilt>(record);
    start_epoch(plan.epoch);
    if (plan.epoch != epoch_) return;
    built_[event.node] = {event.seq, plan};
    changed_ = true;
  } else if (record.kind == port::PlanPeer::kKind) {
    const auto peer = from_record<port::PlanPeer>(record);
    start_epoch(peer.epoch);
    if (peer.epoch != epoch_) return;
    Between& between = peers_[{peer.sender, peer.receiver}];
    (peer.sends ? between.sender : between.receiver) = {event.seq, event.node, peer};
    changed_ = true;
  } else if (record.kind == port::PairChanged::kKind) {
    const auto pair = from_record<port::PairChanged>(record);
    if (pair.state == port::PairState::kConnected) judge_use(event, pair.epoch, out);
  } else {
    judge_use(event, from_record<port::CollectiveEntered>(record).epoch, out);
  }
}

void PlanJudge::judge_use(const port::TraceEvent& event, Epoch epoch, Violations& out) {
  if (!changed_ || epoch != epoch_) return;
  changed_ = false;
  judge_ranges(event, out);
  judge_cover(event, out);
  judge_symmetry(event, out);
}

void PlanJudge::report(const port::TraceEvent& event, InvariantId invariant, NodeId node, std::uint64_t seq,
                       const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event, say(setup_->name_of(node), why, " (epoch ", epoch_, ")"));
  found.node = node;
  found.related.push_back(seq);
  out.add(std::move(found));
}

void PlanJudge::judge_ranges(const port::TraceEvent& event, Violations& out) const {
  const std::uint32_t infer_ranks = setup_->infer_ranks();
  const std::uint32_t world = infer_ranks + setup_->trainers();
  const auto sender_fits = [&](std::uint32_t rank) { return rank >= infer_ranks && rank < world; };
  for (const auto& [node, built] : built_) {
    const std::uint32_t rank = built.plan.rank;
    if (built.plan.sends ? sender_fits(rank) : rank < infer_ranks) continue;
    report(event, InvariantId::kPlanRange, node, built.seq,
           say(" plans to ", built.plan.sends ? "send" : "receive", " as transfer rank ", rank, " of ", world), out);
  }
  for (const auto& [ranks, between] : peers_) {
    if (sender_fits(ranks.first) && ranks.second < infer_ranks) continue;
    const Side& side = between.sender.seq != 0 ? between.sender : between.receiver;
    report(event, InvariantId::kPlanRange, side.node, side.seq,
           say(" has operations from transfer rank ", ranks.first, " to ", ranks.second, " of ", world), out);
  }
}

void PlanJudge::judge_cover(const port::TraceEvent& event, Violations& out) const {
  for (const auto& [node, built] : built_) {
    const port::PlanBuilt& plan = built.plan;
    if (plan.sends || (plan.covered == plan.expected && plan.duplicates == 0)) continue;
    report(event, InvariantId::kPlanCover, node, built.seq,
           say(" has a plan that writes ", plan.covered, " of its ", plan.expected, " elements, ", plan.duplicates,
               " of them more than once"),
           out);
  }
}

void PlanJudge::judge_symmetry(const port::TraceEvent& event, Violations& out) const {
  // A rank with a wrong plan disagrees with all its peers, its peers only with it.
  Flat<NodeId, std::uint32_t> disagreements;
  for (const auto& [ranks, between] : peers_) {
    if (!between.both() || !between.differ()) continue;
    ++disagreements[between.sender.node];
    ++disagreements[between.receiver.node];
  }
  if (disagreements.empty()) return;
  for (const auto& [ranks, between] : peers_) {
    if (!between.both() || !between.differ()) continue;
    const bool receiver_is_odd = disagreements[between.receiver.node] > disagreements[between.sender.node];
    const Side& odd = receiver_is_odd ? between.receiver : between.sender;
    const Side& other = receiver_is_odd ? between.sender : between.receiver;
    report(event, InvariantId::kPlanSym, odd.node, odd.seq,
           say(" plans ", odd.peer.operations, " operations of ", odd.peer.elements, " elements (digest ",
               odd.peer.digest, ") from rank ", ranks.first, " to ", ranks.second, "; ", setup_->name_of(other.node),
               " plans ", other.peer.operations, " of ", other.peer.elements, " (", other.peer.digest, ")"),
           out);
  }
}

}  // namespace areal::sim
