// What is said when a run did not hold: the violation in words, its causes, and a command that was run and reproduced
// it.
#pragma once
#include <string>

#include "sim/cli/cause_log.h"
#include "sim/cli/loaded.h"

namespace areal::cli {

// The command that runs this again: program, scenario, seed and everything else that matters.
std::string reproduce_command(const Arguments& arguments, const std::string& scenario, std::uint64_t seed,
                              const std::string& half);

// Prints the failure of `result`.
void print_failure(const Loaded& loaded, const sim::RunResult& result, const CauseLog& log, std::uint64_t seed);

}  // namespace areal::cli
