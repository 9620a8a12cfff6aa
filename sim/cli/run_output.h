// One run as reports show it, and the words and exit codes that all reports share.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/explore/run.h"

namespace areal::cli {

struct RunOutput {
  std::string scenario;  // The file.
  std::string half;      // "with_defect", "without_defect", or empty.
  std::uint64_t seed = 0;
  sim::SetupPtr setup;  // Names the nodes.
  const sim::RunResult& result;
  std::optional<int> exit_code = std::nullopt;  // Of the program; without it, the verdict's.
};

// "43 applied of 45", of all faults together.
std::string faults_text(std::span<const sim::FaultCount> faults);
// "0x1f": seeds are printed like this everywhere.
std::string seed_text(std::uint64_t seed);
// One violation in a line or two, for people.
std::string violation_text(const sim::Violation& violation, const sim::JudgeSetup& setup);

// Writes `text` and a line end to `path`, "-" being standard output. A failure is said on stderr.
bool write_report(const std::string& path, const std::string& text);

}  // namespace areal::cli
