// Any order, loss and repetition of messages, pauses and restarts at any time: every sample ends once, under its own
// label.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/property/rollout_world.h"

namespace areal::test {
namespace {

constexpr std::uint64_t kSteps = 200'000;

RolloutWorldOptions any_options() {
  RolloutWorldOptions options;
  options.engines = *rc::gen::inRange(1U, 4U);
  options.samples = *rc::gen::inRange(1U, 4U);
  options.updates = *rc::gen::inRange(1U, 5U);
  options.limits.max_concurrent = *rc::gen::inRange(0, 6);
  options.limits.batch = *rc::gen::inRange(1, 4);
  options.limits.max_staleness = *rc::gen::inRange(0, 3);
  options.pauses_engines = *rc::gen::arbitrary<bool>();
  options.mode = *rc::gen::element(proto::PauseMode::kAbortResubmit, proto::PauseMode::kInPlace);
  options.loss = *rc::gen::inRange(0U, 30U);
  options.repeats = *rc::gen::inRange(0U, 30U);
  options.restarts = *rc::gen::inRange(0U, 10U);
  return options;
}

RC_GTEST_PROP(Rollout, EverySampleEndsOnceUnderItsOwnLabel, (std::uint64_t seed)) {
  RolloutWorld world(any_options(), seed);
  const bool ended = world.run(kSteps);
  RC_ASSERT(world.broken == "");
  RC_ASSERT(ended);
}

bool breaks_for_some_seed(const RolloutWorldOptions& options, const std::string& rule) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RolloutWorld world(options, seed);
    world.run(kSteps);
    if (world.broken == rule) return true;
  }
  return false;
}

TEST(Rollout, AWriterThatNeverWaitsIsSeen) {
  RolloutWorldOptions options;
  options.pauses_engines = false;
  options.lock = [](const proto::LockView&) { return proto::WriterClaim{true, false, false}; };
  EXPECT_TRUE(breaks_for_some_seed(options, "a decode ran while weights were written"));
}

}  // namespace
}  // namespace areal::test
