// The subcommands of areal-sim; each file command_*.cpp holds one.
#pragma once
#include "sim/cli/options.h"

namespace areal::cli {

// Exit codes beside those of verdicts (0 held, 1 safety, 2 inconclusive, 3 liveness).
inline constexpr int kNondeterministic = 4;
inline constexpr int kBadUsage = 64;
inline constexpr int kDamaged = 65;
inline constexpr int kInternalError = 70;
inline constexpr int kInterrupted = 130;

// Picks the subcommand and runs it. Returns the exit code.
int run_command_line(int argc, char** argv);

int command_run(const Arguments& arguments);    // One scenario, one seed.
int command_seeds(const Arguments& arguments);  // One scenario, a range of seeds.
int command_real(const Arguments& arguments);
int command_replay(const Arguments& arguments);
int command_replay_nodes(const Arguments& arguments);  // replay of single nodes.
int command_merge(const Arguments& arguments);
int command_diff(const Arguments& arguments);
int command_dump(const Arguments& arguments);
int command_catalogue(const Arguments& arguments);
int command_schema(const Arguments& arguments);
int command_doctor(const Arguments& arguments);

}  // namespace areal::cli
