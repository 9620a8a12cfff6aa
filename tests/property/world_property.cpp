// A world is a value: wherever a run is copied, both copies end alike, and in whatever order they are run.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/world_fixture.h"

namespace areal::test {
namespace {

// The steps of a smoke run; later points of copying mean its end.
constexpr std::uint64_t kSteps = 3'000;

const std::shared_ptr<const sim::Room>& room_with(bool network_is_bad) {
  static const auto kRooms = [] {
    config::Scenario scenario = shipped_scenario("smoke", {"work.updates=2", "expect.published=0", "rollout.batch=2"});
    std::vector<std::shared_ptr<const sim::Room>> rooms{room_of(scenario)};
    config::FaultSpec loss;
    loss.kind = config::FaultKind::kLoseMessage;
    loss.chance = config::Ratio{1, 30};
    scenario.faults.push_back(loss);
    rooms.push_back(room_of(scenario));
    return rooms;
  }();
  return kRooms[network_is_bad ? 1 : 0];
}

RC_GTEST_PROP(World, CopiesEndAsTheOriginal, (std::uint64_t seed)) {
  WorldRun original = WorldRun::begin(room_with(*rc::gen::arbitrary<bool>()), seed);
  original.go(*rc::gen::inRange<std::uint64_t>(0, kSteps));
  WorldRun first = original;
  WorldRun second = original;
  // The copies take turns; the original goes on when both are done.
  for (std::uint64_t i = 0; first.may_step() || second.may_step(); ++i) (i % 3 == 0 ? first : second).go(17);
  RC_ASSERT(first.digest.digest() == second.digest.digest());
  RC_ASSERT(words_of(first.world) == words_of(second.world));
  original.finish();
  RC_ASSERT(first.digest.digest() == original.digest.digest());
  RC_ASSERT(words_of(first.world) == words_of(original.world));
}

}  // namespace
}  // namespace areal::test
