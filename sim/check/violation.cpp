// Collects violations; the same one twice is kept once.
#include "sim/check/violation.h"

namespace areal::sim {

Violation violation_at(InvariantId invariant, const port::TraceEvent& event, std::string message) {
  Violation violation;
  violation.invariant = invariant;
  violation.level = info_of(invariant).level;
  violation.seq = event.seq;
  violation.at = event.at;
  violation.node = event.node;
  violation.message = std::move(message);
  violation.related.push_back(event.seq);
  return violation;
}

void Violations::add(Violation violation) {
  for (const Violation& known : all_) {
    if (known.invariant != violation.invariant) continue;
    if (known.node == violation.node && known.version == violation.version) {
      ++repeated_;
      return;
    }
  }
  all_.push_back(std::move(violation));
}

}  // namespace areal::sim
