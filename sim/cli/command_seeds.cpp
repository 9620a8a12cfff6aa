// `areal-sim SCENARIO.yaml --seeds A..B`: a range of seeds in worker processes, and what came of it.
#include <fmt/core.h>

#include <cstdio>

#include "sim/cli/command.h"
#include "sim/cli/failure.h"
#include "sim/cli/output_json.h"
#include "sim/cli/output_junit.h"
#include "sim/cli/recording.h"
#include "sim/cli/seed_pool.h"
#include "sim/cli/seed_run.h"
#include "sim/cli/seeds_summary.h"

namespace areal::cli {
namespace {

SeedsReport make_report(const Arguments& arguments, const Loaded& loaded, const sim::World& world) {
  SeedsReport report;
  report.scenario = arguments.files.front();
  report.half = loaded.half;
  report.profile = profile_name(arguments.profile);
  report.range = *arguments.seeds;
  for (const sim::PlannedFault& fault : world.faults().faults()) {
    report.faults.push_back({sim::name_of(fault.spec.kind), fault.spec.node});
  }
  report.node_names.emplace_back();
  for (const sim::RoomNode& node : loaded.room->nodes) report.node_names.push_back(node.name);
  return report;
}

// The failing seed that says most: the first of the worst.
std::optional<std::size_t> find_worst(std::span<const SeedOutcome> outcomes) {
  std::optional<std::size_t> found;
  int worst = 0;
  for (std::size_t index = 0; index < outcomes.size(); ++index) {
    const int code = exit_code(outcomes[index]);
    if (code == worst || worse(code, worst) != code) continue;
    worst = code;
    found = index;
  }
  return found;
}

// Such a seed is run by --seeds, which survives it and runs it twice.
bool needs_range(const SeedOutcome& outcome) { return outcome.changed || outcome.end == SeedEnd::kBroken; }

std::string command_for(const Arguments& arguments, const Loaded& loaded, std::uint64_t seed, bool as_range) {
  std::string command = reproduce_command(arguments, arguments.files.front(), seed, loaded.half);
  if (!as_range) return command;
  const std::string one = fmt::format("--seed {:#x}", seed);
  return command.replace(command.find(one), one.size(), fmt::format("--seeds {0:#x}..{0:#x}", seed));
}

// Does what the command would do, from the reading of the scenario on.
bool reproduces(const Arguments& arguments, std::uint64_t seed, const SeedOutcome& outcome) {
  const auto loaded = load_scenario(arguments.files.front(), arguments.sets, arguments.half);
  if (!loaded) return false;
  if (needs_range(outcome)) {
    auto pool = SeedPool::make(*loaded, {.profile = arguments.profile, .range = {seed, seed}});
    if (!pool) return false;
    const auto done = (*pool)->run([](const PoolProgress&) {});
    return done && *done && exit_code((*pool)->outcomes().front()) == exit_code(outcome);
  }
  SeedOutcome again{};
  SeedDetail detail{};
  run_seed(*loaded, arguments.profile, seed, kRecheckPercent, again, detail);
  return again.end == outcome.end && again.digest == outcome.digest && !again.changed;
}

// Prints the last line, a command that was run. Returns the exit code.
int conclude(const Arguments& arguments, const Loaded& loaded, SeedsReport& report) {
  const auto worst = find_worst(report.outcomes);
  if (!worst) return 0;
  const SeedOutcome& outcome = report.outcomes[*worst];
  const std::uint64_t seed = report.seed_of(*worst);
  const int code = exit_code(outcome);
  const std::string command = command_for(arguments, loaded, seed, needs_range(outcome));
  if (reproduces(arguments, seed, outcome)) {
    report.reproduce = command;
    return code;
  }
  fmt::print("seed {:#x} came out otherwise when it was run again; this may show it: {}\n", seed, command);
  return worse(code, kNondeterministic);
}

bool write_reports(const Arguments& arguments, const SeedsReport& report) {
  const bool json = arguments.json.empty() || write_json(arguments.json, report);
  const bool junit = arguments.junit.empty() || write_junit(arguments.junit, report);
  return json && junit;
}

}  // namespace

int command_seeds(const Arguments& arguments) {
  const std::string& file = arguments.files.front();
  const auto loaded = load_scenario(file, arguments.sets, arguments.half);
  if (!loaded) return kBadUsage;
  const SeedRange range = *arguments.seeds;
  const auto world = sim::World::make(loaded->room, range.first, arguments.profile, loaded->defect_rules);
  if (!world) {
    fmt::print(stderr, "{} has 1 problem; nothing was started.\n  {}\n", file, world.error().detail);
    return kBadUsage;
  }
  fmt::print("{}   {}   seeds {}..{}   jobs {}   profile {}{}\n", program_version(), file, range.first, range.last,
             arguments.jobs, profile_name(arguments.profile), loaded->half.empty() ? "" : "   " + loaded->half);
  auto pool = SeedPool::make(*loaded, {arguments.profile, range, arguments.jobs, arguments.recheck_percent});
  if (!pool) {
    fmt::print(stderr, "areal-sim: {}\n", pool.error().detail);
    return kInternalError;
  }
  SeedsReport report = make_report(arguments, *loaded, *world);
  SeedsProgress progress((*pool)->outcomes().size(), arguments.quiet);
  const auto done = (*pool)->run([&](const PoolProgress& now) { progress.tell(now); });
  progress.end();
  if (!done) {
    fmt::print(stderr, "areal-sim: {}\n", done.error().detail);
    return kInternalError;
  }
  report.outcomes = (*pool)->outcomes();
  report.details = (*pool)->details();
  report.wall_s = (*pool)->wall_s();
  if (!*done) fmt::print("interrupted; what was done until then:\n");
  print_summary(report);
  std::fflush(stdout);
  report.exit_code = *done ? conclude(arguments, *loaded, report) : kInterrupted;
  const bool written = write_reports(arguments, report);
  if (!report.reproduce.empty()) fmt::print("reproduce: {}\n", report.reproduce);
  return written ? report.exit_code : worse(report.exit_code, kInternalError);
}

}  // namespace areal::cli
