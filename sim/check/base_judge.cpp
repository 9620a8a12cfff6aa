// Holds deltas to what their receivers are proven to hold.
#include "sim/check/base_judge.h"

namespace areal::sim {

std::span<const KindId> BaseJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::ComputeDone::kKind, port::ApplyStarted::kKind, port::Applied::kKind,      port::WeightsState::kKind,
      Incarnations::kStarted,   Incarnations::kChanged,    port::StartCompute::kKind, port::DeltaVoted::kKind};
  if (!setup_->delta) return {};
  return kWanted;
}

void BaseJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::DeltaVoted::kKind) {
    voted_ = from_record<port::DeltaVoted>(record);
    voted_seq_ = event.seq;
  } else if (record.kind == port::StartCompute::kKind) {
    const auto start = from_record<port::StartCompute>(record);
    if (start.what == port::ComputeKind::kApplyDelta) on_apply(event, start, out);
  } else {
    weights_.on_event(event);
  }
}

void BaseJudge::on_apply(const port::TraceEvent& event, const port::StartCompute& start, Violations& out) const {
  const EngineWeights::Rank* rank = weights_.rank_at(event.node);
  if (rank == nullptr) return;
  // Without a vote in the trace the base is what it must be.
  const bool voted = voted_seq_ != 0 && voted_.version == start.version && voted_.epoch == start.epoch;
  const Version base = voted ? voted_.base : start.version - 1;
  std::string lack;
  if (!rank->loaded || rank->state == port::ServeState::kLoading) {
    lack = "which has no proven weights since it started";
  } else if (rank->state == port::ServeState::kQuarantined) {
    lack = "whose weights are refused";
  } else if (rank->version != base) {
    lack = say("which holds version ", rank->version);
  } else {
    return;
  }
  Violation found = violation_at(InvariantId::kInv4, event,
                                 say("the delta from version ", base, " to ", start.version, " is applied by ",
                                     setup_->name_of(event.node), ", ", lack));
  found.version = start.version;
  if (voted) found.related.push_back(voted_seq_);
  if (rank->since != 0) found.related.push_back(rank->since);
  out.add(std::move(found));
}

}  // namespace areal::sim
