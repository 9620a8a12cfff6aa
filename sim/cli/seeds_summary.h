// What is printed about a range of seeds: progress while it runs, and what came of it.
#pragma once
#include "sim/cli/seed_pool.h"
#include "sim/cli/seeds_report.h"

namespace areal::cli {

// On stderr: one line that is written over on a terminal, else a line every five seconds.
class SeedsProgress {
 public:
  SeedsProgress(std::uint64_t count, bool quiet);
  void tell(const PoolProgress& progress);
  // Wipes the line.
  void end();

 private:
  std::uint64_t count_;
  bool quiet_;
  bool terminal_;
  double next_line_s_ = 0;
};

// On stdout: counts and rates, faults, and the failing seeds by invariant.
void print_summary(const SeedsReport& report);

}  // namespace areal::cli
