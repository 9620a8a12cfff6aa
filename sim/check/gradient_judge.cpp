// Follows the gradient memory of every trainer.
#include "sim/check/gradient_judge.h"

namespace areal::sim {

std::span<const KindId> GradientJudge::interest() const {
  static constexpr std::array<KindId, 6> kWanted{port::GradientsChanged::kKind, port::CollectiveEntered::kKind,
                                                 port::UpdateEnded::kKind,      port::StartCompute::kKind,
                                                 Incarnations::kStarted,        Incarnations::kChanged};
  if (!setup_->delta) return {};
  return kWanted;
}

void GradientJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) given_up_.erase(*gone);
  if (record.kind == port::GradientsChanged::kKind) {
    if (from_record<port::GradientsChanged>(record).held) {
      given_up_.erase(event.node);
    } else {
      given_up_[event.node] = event.seq;
    }
  } else if (record.kind == port::CollectiveEntered::kKind) {
    version_ = from_record<port::CollectiveEntered>(record).version;
    const std::uint64_t* since = given_up_.find(event.node);
    if (since != nullptr) report(event, event.node, *since, "when it enters the next update", out);
  } else if (record.kind == port::UpdateEnded::kKind) {
    const auto ended = from_record<port::UpdateEnded>(record);
    if (ended.outcome != port::Outcome::kOk) return;
    version_ = ended.version;
    for (const auto& [node, since] : given_up_) report(event, node, since, "when the update has ended", out);
  } else if (record.kind == port::StartCompute::kKind) {
    const port::ComputeKind what = from_record<port::StartCompute>(record).what;
    const std::uint64_t* since = given_up_.find(event.node);
    const bool trains = what == port::ComputeKind::kGradients || what == port::ComputeKind::kTrainStep;
    if (since != nullptr && trains) report(event, event.node, *since, "when it trains", out);
  }
}

void GradientJudge::report(const port::TraceEvent& event, NodeId node, std::uint64_t since, const std::string& when,
                           Violations& out) const {
  Violation found = violation_at(InvariantId::kDeltaGrads, event,
                                 say(setup_->name_of(node), " has no gradient memory ", when,
                                     ": it was given up for an update and never came back"));
  found.node = node;
  found.version = version_;
  found.related.push_back(since);
  out.add(std::move(found));
}

}  // namespace areal::sim
