// INV-7: what is said when nothing happens any more although something should: who waits for whom.
//
// A proven cycle of waits is safety (exit 1): no time would end it. Anything else that is stuck is liveness (exit 3).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/time.h"
#include "sim/check/judge_setup.h"
#include "sim/check/violation.h"

namespace areal::sim {

struct WaitEdge {
  NodeId from;
  NodeId on;  // 0: nobody in particular. Such an edge, and one to the node itself (another of its protocols), is part
              // of no cycle.
  std::string what;
};

// The edges of one cycle in order, starting at its lowest node; empty if there is none. The same for equal input.
std::vector<WaitEdge> find_cycle(std::span<const WaitEdge> edges);

struct StuckAt {
  std::uint64_t seq = 0;  // Of the last event.
  Instant at;
  std::uint64_t step = 0;
};

// Blames the lowest node of the cycle; without one, the node that others wait for and that waits for nobody else, or
// else the first that waits.
Violation make_stuck_violation(std::span<const WaitEdge> edges, const JudgeSetup& setup, const StuckAt& where);

}  // namespace areal::sim
