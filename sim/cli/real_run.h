// Runs a scenario in real processes of this machine: starts guards and services, shows what they say, ends all of them.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/port/trace_sink.h"
#include "sim/world/room.h"

namespace areal::cli {

struct RealRunSettings {
  const sim::Room* room = nullptr;
  std::uint64_t seed = 0;
  std::filesystem::path program;      // areal-node.
  std::filesystem::path folder;       // Of the run; made anew.
  Duration limit{600'000'000'000};    // Of wall time; then the run is stopped.
  port::TraceSink* notes = nullptr;   // Hears notes and faults of all processes as they come.
  std::function<bool()> interrupted;  // Asked often.
};

struct RealRunResult {
  std::optional<port::RunEnded> end;  // What the training loop said.
  std::string failure;                // Why the run was stopped before that; empty if it was not.
  bool interrupted = false;
  std::filesystem::path recordings;  // Folder: one file a process.
};

// Blocks until the run ended, failed, took too long or was interrupted; by then every process of it is gone. Errors:
// the folder cannot be made, or processes cannot be started.
Result<RealRunResult> run_real(const RealRunSettings& settings);

}  // namespace areal::cli
