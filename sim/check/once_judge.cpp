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
    // A duplicate of an update that is two versions back would be refused by anything that knows versions at all.
    entered_.erase_if([&](const Entry& key, std::uint64_t) {
      return key.epoch + 1 < entered.epoch || key.version + 2 < entered.version;
    });
    return;
  }
  Violation found = violation_at(InvariantId::kGwOnce, event,
                                 say(setup_->name_of(event.node), " entered the collectives of version ",
                                     entered.version, " (epoch ", entered.epoch, ", attempt ", entered.attempt,
                                     ") a second time"));
  found.version = entered.version;
  found.related.push_back(seq);
  out.add(std::move(found));
}

}  // namespace areal::sim
