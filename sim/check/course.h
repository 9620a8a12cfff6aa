// Compares what members of one group did one after the other, also while some are on their way.
//
// Meetings tell only of batches that all posted. A member that leaves something out and goes on is seen here: it is
// over with less than the others have begun. Pure functions on values.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"

namespace areal::sim {

struct Course {
  NodeId node;
  std::vector<std::uint64_t> marks;  // One for each thing done, in order.
  bool over = false;                 // It went on to what comes after: no mark will follow.
  std::uint64_t seq = 0;             // Of the last event.
};

// Whether both can be of members that do the same: equal as far as both went, and nobody is over before the other.
bool fit(const Course& a, const Course& b);

struct OddOnes {
  const Course* rule = nullptr;      // What most do; null if all fit.
  std::vector<const Course*> found;  // Those that do not fit it.
};
// Who differs from most of those that cannot agree. In a tie the rule is the longest course, then the first.
OddOnes find_odd_ones(std::span<const Course> courses);

}  // namespace areal::sim
