// Reports for continuous integration: JUnit XML with one test case for each scenario and seed.
//
// Violated and stuck runs are failures with the violations as text, inconclusive ones are skipped, a run that the
// program itself broke is an error.
#pragma once
#include <string>

#include "sim/cli/run_output.h"
#include "sim/cli/seeds_report.h"

namespace areal::cli {

// Path "-" is standard output. A failure is said on stderr and gives false.
bool write_junit(const std::string& path, const RunOutput& run);
bool write_junit(const std::string& path, const SeedsReport& report);

}  // namespace areal::cli
