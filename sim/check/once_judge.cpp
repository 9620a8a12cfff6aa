// Counts how often each rank enters the collectives of an attempt.
#include "sim/check/once_judge.h"

namespace areal::sim {

std::span<const KindId> OnceJudge::interest() const {
  static constexpr std::array<KindId, 1> kWanted{port::CollectiveEntered::kKind};
  return kWanted;
}

void OnceJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const auto entered = from_record<port::CollectiveEntered>(subject(event));
  std::uint64_t& seq = entered_[{entered.epoch, entered.version, entered.attempt, event.node}];
  if (seq == 0) {
    seq = event.seq;
    if (entered.epoch == newest_.epoch && entered.version <= newest_.version) return;
    newest_ = {entered.epoch, entered.version, 0, {}};
    // A late duplicate is a few updates late; what is further back can be forgotten.
    entered_.erase_if([&](const Entry& key, std::uint64_t) {
      return key.epoch + 2 < entered.epoch || (key.epoch == entered.epoch && key.version + 4 < entered.version);
    });
    return;
  }
  Violation found =
      violation_at(InvariantId::kGwOnce, event,
                   say(setup_->name_of(event.node), " entered the collectives of version ", entered.version, " (epoch ",
                       entered.epoch, ", attempt ", entered.attempt, ") a second time"));
  found.version = entered.version;
  found.related.push_back(seq);
  out.add(std::move(found));
}

}  // namespace areal::sim
