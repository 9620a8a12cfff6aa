#include "sim/cli/summary.h"

#include <fmt/core.h>

#include <array>

#include "engine/base/text.h"
#include "sim/cli/run_output.h"

namespace areal::cli {
namespace {

constexpr std::array<std::string_view, 4> kVerdictWords{"HELD", "FAIL", "INCONCLUSIVE", "STUCK"};

}  // namespace

void print_summary(const sim::Room& room, const sim::RunResult& result, const Story::Totals& totals,
                   const std::string& last_line) {
  const std::uint64_t samples = totals.groups_accepted * room.scenario.rollout.samples;
  fmt::print(
      "\n{}  {} updates ({} full, {} delta), {} failed attempts; {} samples in {} groups, {} rejected, {} "
      "resubmitted\n",
      kVerdictWords[static_cast<std::size_t>(result.verdict)], result.published, totals.full, totals.delta,
      totals.failed_attempts, count_text(samples), totals.groups_accepted, totals.groups_rejected, totals.resubmitted);
  fmt::print("      {} tokens labelled, most staleness {} of {}; {} port leases, {} receipts\n",
             count_text(totals.tokens), totals.most_staleness, room.scenario.rollout.staleness, totals.leases,
             totals.receipts);
  const std::string faults =
      result.faults.empty() ? fmt::format("{} applied", totals.faults) : faults_text(result.faults);
  fmt::print("      faults {}; {} violations\n", faults, result.violations.all().size());
  if (!result.blind.empty() && result.verdict == config::Verdict::kHeld) {
    fmt::print("      judges missed {} kinds of events that did not happen in this run (--json lists them)\n",
               result.blind.size());
  }
  fmt::print("      {}\n", last_line);
}

}  // namespace areal::cli
