// The table of the scheduler's benchmarks, and the check that both queues gave one order.
#pragma once
#include <string_view>

namespace areal::bench {

// Runs all cases, alternating the two queues, and prints medians. False if an order differs. `quick` runs few events
// once, with the hook on as well.
bool report_scheduler(bool quick);
// One case once, for scripts: prints `CASE ns-per-event events order`. False if there is no such case.
bool report_one(std::string_view name, bool reference);

}  // namespace areal::bench
