// One seed of a range: run, judged against what the scenario expects, run again where that is due.
#pragma once
#include "sim/cli/loaded.h"
#include "sim/cli/seeds_report.h"

namespace areal::cli {

// How a run ended, in the sense of `areal-sim SCENARIO --seed N`: an early end that the scenario expects held.
SeedEnd end_of(const Loaded& loaded, const sim::RunResult& result);

// Whether a seed that held is run again, if so many percent are: always the same ones.
bool is_sampled(std::uint64_t seed, unsigned percent);

// Fills both; outcome.end last, so that another process sees a whole outcome or none. Runs it twice if it did not hold
// or it is one of `recheck_percent`.
void run_seed(const Loaded& loaded, sim::Profile profile, std::uint64_t seed, unsigned recheck_percent,
              SeedOutcome& outcome, SeedDetail& detail);

// Marks a seed whose run the program did not survive.
void set_broken(const std::string& why, SeedOutcome& outcome, SeedDetail& detail);

}  // namespace areal::cli
