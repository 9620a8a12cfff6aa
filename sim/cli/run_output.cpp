#include "sim/cli/run_output.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/base/text.h"

namespace areal::cli {

std::string faults_text(std::span<const sim::FaultCount> faults) {
  std::uint64_t applied = 0;
  std::uint64_t scheduled = 0;
  for (const sim::FaultCount& fault : faults) applied += fault.applied, scheduled += fault.scheduled;
  return fmt::format("{} applied of {}", applied, scheduled);
}

std::string seed_text(std::uint64_t seed) { return fmt::format("{:#x}", seed); }

std::string violation_text(const sim::Violation& violation, const sim::JudgeSetup& setup) {
  const sim::InvariantInfo& info = sim::info_of(violation.invariant);
  std::string text =
      fmt::format("{} at event {}, t={}", info.name, count_text(violation.seq), to_text(Duration{violation.at.ns}));
  if (violation.node.value != 0) text += ", node " + setup.name_of(violation.node);
  if (violation.version) text += fmt::format(", version {}", *violation.version);
  return text + fmt::format(": {}\n  must hold: {}", violation.message, info.sentence);
}

bool write_report(const std::string& path, const std::string& text) {
  std::FILE* out = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  bool good = out != nullptr;
  if (good) {
    good = std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fputc('\n', out) != EOF;
    good = std::fflush(out) == 0 && good;
    if (out != stdout) good = std::fclose(out) == 0 && good;
  }
  if (!good) fmt::print(stderr, "areal-sim: {}: cannot be written: {}\n", path, std::strerror(errno));
  return good;
}

}  // namespace areal::cli
