#include "bench/scheduler/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/scheduler/cases.h"
#include "engine/port/trace_digest.h"

namespace areal::bench {
namespace {

struct Samples {
  std::vector<double> values;

  [[nodiscard]] double median() const {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double least() const { return std::ranges::min(values); }
  [[nodiscard]] double greatest() const { return std::ranges::max(values); }
};

// Counts what the hook reports, and hashes it.
class CountingSink final : public port::TraceSink {
 public:
  void on_event(const port::TraceEvent& event) override { digest_.on_event(event), ++count_; }
  void on_state(NodeId /*node*/, SlotId /*slot*/, const Digest128& /*digest*/) override {}
  void on_stream(std::uint32_t /*stream*/, std::string_view /*name*/) override {}
  void on_decision(const port::Decision& /*decision*/) override {}
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  port::TraceDigest digest_;
  std::uint64_t count_ = 0;
};

bool report_case(const Case& one, int rounds) {
  Samples ours;
  Samples reference;
  Samples reported;
  bool equal = true;
  for (int round = 0; round < rounds; ++round) {
    const Measured first = one.run(one, Through::kScheduler, Hook());
    const Measured second = one.run(one, Through::kReference, Hook());
    CountingSink sink;
    const Measured third = one.run(one, Through::kScheduler, Hook(&sink));
    equal = equal && first.order == second.order && first.order == third.order && sink.count() == third.events;
    ours.values.push_back(first.ns_per_event());
    reference.values.push_back(second.ns_per_event());
    reported.values.push_back(third.ns_per_event());
  }
  fmt::print("{:<16} {:>9.1f} {:>7.1f} {:>7.1f} {:>10.1f} {:>7.2f} {:>11.1f}   {}\n", one.name, ours.median(),
             ours.least(), ours.greatest(), reference.median(), reference.median() / ours.median(), reported.median(),
             equal ? "equal" : "DIFFERENT");
  std::fflush(stdout);
  return equal;
}

}  // namespace

bool report_scheduler(bool quick) {
  const int rounds = quick ? 1 : 5;
  fmt::print("scheduler, ns an event, median of {}; std is std::priority_queue, hook on hashes each event\n", rounds);
  fmt::print("{:<16} {:>9} {:>7} {:>7} {:>10} {:>7} {:>11}   {}\n", "case", "scheduler", "min", "max", "std", "ratio",
             "hook on", "order");
  bool equal = true;
  for (const Case& one : all_cases(quick)) equal = report_case(one, rounds) && equal;
  return equal;
}

bool report_one(std::string_view name, bool reference) {
  const Case one = find_case(name);
  if (one.run == nullptr) return false;
  const Measured result = one.run(one, reference ? Through::kReference : Through::kScheduler, Hook());
  fmt::print("{} {:.3f} {} {}\n", one.name, result.ns_per_event(), result.events, result.order);
  return true;
}

}  // namespace areal::bench
