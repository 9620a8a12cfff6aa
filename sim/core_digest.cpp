// Runs scenarios once each and prints their digests: the simulator's core without recordings and command line, so that
// a further compiler or optimisation level costs a small build.
//
//   core-digest SEED SCENARIO.yaml...      exit 0; 64 if a scenario cannot be read, 1 if a run broke a promise
#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "engine/config/scenario_yaml.h"
#include "sim/explore/run.h"

namespace {

int run_file(const char* file, std::uint64_t seed) {
  const areal::config::ReadScenario read = areal::config::read_scenario_file(file);
  if (!read.scenario) {
    fmt::print(stderr, "{}\n", areal::config::refusal_text(file, read.problems));
    return 64;
  }
  auto room = areal::sim::build_room(*read.scenario, {});
  if (!room) {
    fmt::print(stderr, "{}: {}\n", file, room.error().detail);
    return 64;
  }
  areal::sim::RunSettings settings;
  settings.room = *room;
  settings.seed = seed;
  const auto result = areal::sim::run_once(settings, nullptr);
  if (!result) {
    fmt::print(stderr, "{}: {}\n", file, result.error().detail);
    return 64;
  }
  fmt::print("{} digest {} events {}\n", read.scenario->name, areal::to_hex(result->digest), result->events);
  return result->violations.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: core-digest SEED SCENARIO.yaml...\n");
    return 64;
  }
  const std::string_view text = argv[1];
  std::uint64_t seed = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), seed).ec != std::errc{}) return 64;
  int status = 0;
  for (int i = 2; i < argc; ++i) {
    if (const int one = run_file(argv[i], seed); one != 0) status = one;
  }
  return status;
}
