// The command line, read and checked: one struct for all subcommands, and the words of --help.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fault/planned_fault.h"

namespace areal::cli {

enum class Half : std::uint8_t { kNone, kWithDefect, kWithoutDefect };

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // Included.
};

// Of the seeds of a range that hold, so many are run twice; those that do not hold always are.
inline constexpr unsigned kRecheckPercent = 5;

struct Arguments {
  std::string program;             // As it was called, for lines that can be pasted.
  std::string command = "run";     // run, real, replay, merge, diff, dump, catalogue, schema, doctor.
  std::vector<std::string> files;  // What follows the command.
  std::optional<std::uint64_t> seed;
  std::optional<SeedRange> seeds;
  unsigned jobs = 1;
  unsigned recheck_percent = kRecheckPercent;  // With seeds.
  std::string record;                          // Empty: no recording.
  std::string json;
  std::string junit;
  sim::Profile profile = sim::Profile::kCalm;
  std::string until;              // A time ("45s") or an event number.
  std::vector<std::string> sets;  // "path.to.key=value".
  Half half = Half::kNone;
  bool quiet = false;
  bool profile_judges = false;
  bool from_decisions = false;   // replay: take the recorded decisions instead of the seed's.
  std::string backend = "gloo";  // real.
  bool keep = false;             // real: the folder of the run.
  bool history = false;          // diff: compare what the runs came to instead of every line.
  bool all_nodes = false;        // replay: every node by itself.
  std::string node;              // dump, replay: pattern.
  std::string kind;              // dump.
  std::uint64_t from = 0;        // dump: first event.
  std::uint64_t to = UINT64_MAX;
};

// Either arguments, or an exit code with everything already said (help, version, bad usage).
struct ParsedArguments {
  std::optional<Arguments> arguments;
  int exit_code = 0;
};
ParsedArguments parse_arguments(int argc, char** argv);

}  // namespace areal::cli
