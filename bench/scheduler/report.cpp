#include "bench/scheduler/report.h"

#include <fmt/format.h>

#include <vector>

#include "bench/samples.h"
#include "bench/scheduler/cases.h"
#include "engine/port/trace_digest.h"

namespace areal::bench {
namespace {

// Counts what the hook reports, and hashes it.
class CountingSink final : public port::EventSink {
 public:
  void on_event(const port::TraceEvent& event) override { digest_.on_event(event), ++count_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  port::TraceDigest digest_;
  std::uint64_t count_ = 0;
};

bool report_case(const Case& one, int rounds) {
  std::vector<double> ours, reference, reported;
  bool equal = true;
  for (int round = 0; round < rounds; ++round) {
    const Measured first = one.run(one, Through::kScheduler, Hook());
    const Measured second = one.run(one, Through::kReference, Hook());
    CountingSink sink;
    const Measured third = one.run(one, Through::kScheduler, Hook(&sink));
    equal = equal && first.order == second.order && first.order == third.order && sink.count() == third.events;
    ours.push_back(first.ns_per_event());
    reference.push_back(second.ns_per_event());
    reported.push_back(third.ns_per_event());
  }
  const Spread time = spread_of(ours);
  const double peer = spread_of(reference).median;
  fmt::print("{:<16} {:>9.1f} {:>7.1f} {:>7.1f} {:>10.1f} {:>7.2f} {:>11.1f}   {}\n", one.name, time.median, time.least,
             time.most, peer, peer / time.median, spread_of(reported).median, equal ? "equal" : "DIFFERENT");
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
