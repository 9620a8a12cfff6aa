// Tries all orders of a scenario's named points, one run each.
//
// Orders come in lexicographic order of the points as the scenario lists them, at most InterleaveSpec::limit of them;
// no order is left out because another one looks like it. An order that the program does not let happen (its points
// depend on each other) is run too, and counted apart.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/explore/run.h"

namespace areal::sim {

using PointOrder = std::vector<std::uint32_t>;  // order[i] is the point that comes i-th.

// Whether this is what is looked for: a witness.
using IsWitness = std::function<bool(const RunResult& result)>;

struct InterleaveResult {
  std::uint64_t tried = 0;
  std::uint64_t kept = 0;  // The points came in that order.
  std::uint64_t witnesses = 0;
  PointOrder witness;  // The first; empty if there is none.
  RunResult witness_run;
};

// `settings.order` is set for each run. Errors: the points cannot be compiled. REQUIRES: the scenario has points.
Result<InterleaveResult> try_orders(RunSettings settings, const IsWitness& is_witness);

// "pause, check, continue": the names of the points in that order.
std::string to_text(const config::InterleaveSpec& spec, const PointOrder& order);

}  // namespace areal::sim
