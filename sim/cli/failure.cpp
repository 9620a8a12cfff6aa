#include "sim/cli/failure.h"

#include <fmt/core.h>

#include "engine/base/text.h"
#include "sim/cli/recording.h"
#include "sim/cli/run_output.h"

namespace areal::cli {
namespace {

constexpr std::size_t kMostCauses = 8;
constexpr std::size_t kMostWaits = 24;

std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" '\"$`\\*?[]{}()<>|&;~#!") == std::string::npos;
  if (plain && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void print_waits(const Loaded& loaded, const sim::RunResult& result) {
  std::size_t shown = 0;
  for (const sim::WaitEdge& wait : result.waits) {
    if (++shown > kMostWaits) {
      fmt::print("  ... and {} more waits\n", result.waits.size() - kMostWaits);
      return;
    }
    const std::string on = wait.on.value != 0 ? "  on " + loaded.room->node(wait.on).name : "";
    fmt::print("  waits  {}: {}{}\n", loaded.room->node(wait.from).name, wait.what, on);
  }
}

}  // namespace

std::string reproduce_command(const Arguments& arguments, const std::string& scenario, std::uint64_t seed,
                              const std::string& half) {
  std::string command = fmt::format("{} {} --seed {:#x}", quoted(arguments.program), quoted(scenario), seed);
  if (arguments.profile != sim::Profile::kCalm) command += " --profile " + profile_name(arguments.profile);
  if (!half.empty()) command += " --half " + half;
  for (const std::string& set : arguments.sets) command += " --set " + quoted(set);
  if (!arguments.until.empty()) command += " --until " + quoted(arguments.until);
  return command;
}

void print_failure(const Loaded& loaded, const sim::RunResult& result, const CauseLog& log, std::uint64_t seed) {
  const sim::Room& room = *loaded.room;
  if (result.violations.all().empty()) {
    fmt::print("\nFAIL  {}     scenario {}   seed {:#x}   event {}   t={}\n", result.why, room.scenario.file, seed,
               count_text(result.events), to_text(Duration{result.ended_at.ns}));
    return;
  }
  for (const sim::Violation& violation : result.violations.all()) {
    const bool safety = violation.level == sim::InvariantClass::kSafety;
    fmt::print("\nFAIL  {}   ({})     scenario {}   seed {:#x}   event {}   t={}\n",
               sim::info_of(violation.invariant).name, safety ? "safety" : "liveness", room.scenario.file, seed,
               count_text(violation.seq), to_text(Duration{violation.at.ns}));
    fmt::print("  must hold    {}\n", sim::info_of(violation.invariant).sentence);
    fmt::print("  was seen     {}\n", violation.message);
    const char* lead = "cause chain";
    for (const CauseLog::Cause& event : log.chain(violation.seq, kMostCauses)) {
      std::string what = to_text(room.kinds, event.record);
      if (event.body.kind != 0) what = to_text(room.kinds, event.body);
      if (event.rule != 0) what += fmt::format("   (made by rule #{})", event.rule);
      fmt::print("  {:<12} {:>7}  {:<18} {}\n", lead, event.seq,
                 event.node.value != 0 ? room.node(event.node).name : "-", what);
      lead = "";
    }
  }
  print_waits(loaded, result);
  if (!result.faults.empty()) fmt::print("  faults       {}\n", faults_text(result.faults));
}

}  // namespace areal::cli
