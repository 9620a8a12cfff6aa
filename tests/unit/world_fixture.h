// Rooms of the shipped scenarios and small ways to run a world by hand.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/config/scenario_yaml.h"
#include "engine/port/trace_digest.h"
#include "sim/world/world.h"

namespace areal::test {

// The scenario file of this name in scenarios/, with some values changed.
inline config::Scenario shipped_scenario(const std::string& name, const std::vector<config::Override>& sets = {}) {
  const auto read = config::read_scenario_file(std::string(AREAL_SOURCE_DIR) + "/scenarios/" + name + ".yaml", sets);
  if (!read.scenario) std::fputs(config::refusal_text(name, read.problems).c_str(), stderr);
  AREAL_CHECK(read.scenario.has_value());
  return *read.scenario;
}

inline std::shared_ptr<const sim::Room> room_of(const config::Scenario& scenario) {
  auto room = sim::build_room(scenario, {});
  AREAL_CHECK(room.has_value());
  return *room;
}

inline sim::World world_of(const std::shared_ptr<const sim::Room>& room, std::uint64_t seed) {
  auto world = sim::World::make(room, seed, sim::Profile::kCalm, {});
  AREAL_CHECK(world.has_value());
  return std::move(*world);
}

inline std::vector<std::uint64_t> words_of(const sim::World& world) {
  StateWriter writer;
  world.save(writer);
  return {writer.words().begin(), writer.words().end()};
}

// A world with the digest of all that it did.
struct WorldRun {
  sim::World world;
  port::TraceDigest digest{};

  static WorldRun begin(const std::shared_ptr<const sim::Room>& room, std::uint64_t seed) {
    WorldRun run{world_of(room, seed)};
    run.world.start(run.digest);
    return run;
  }
  [[nodiscard]] bool may_step() const { return world.has_event() && !world.ended(); }
  // At most so many events of the queue.
  WorldRun& go(std::uint64_t steps) {
    for (; steps > 0 && may_step(); --steps) world.step(digest);
    return *this;
  }
  // Returns how many steps it took.
  std::uint64_t finish() {
    std::uint64_t steps = 0;
    for (; may_step(); ++steps) world.step(digest);
    return steps;
  }
};

}  // namespace areal::test
