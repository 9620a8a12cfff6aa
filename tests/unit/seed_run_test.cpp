// A range of seeds: which are run twice, and that a run which is no function of its seed is reported.
#include "sim/cli/seed_run.h"

#include <gtest/gtest.h>

#include "sim/cli/command.h"
#include "sim/cli/failure.h"
#include "sim/cli/recording.h"
#include "sim/cli/seed_pool.h"
#include "sim/cli/story.h"
#include "sim/explore/listeners.h"
#include "tests/sim/scenario_runs.h"
#include "tests/unit/temp_folder.h"

namespace areal::cli {
namespace {

// A planted fault of the program: what it answers depends on what the process did before.
proto::WriterClaim moody_claim(const proto::LockView& /*view*/) {
  static std::uint64_t asked = 0;
  return {++asked % 5 != 0, true, false};
}

Loaded loaded(const std::string& file, const sim::RoomPolicies& policies = {}) {
  const config::Scenario scenario = test::read(test::scenario_folder() + "/" + file);
  auto room = sim::build_room(scenario, policies);
  EXPECT_TRUE(room) << (room ? "" : room.error().detail);
  Loaded made;
  if (room) made.room = *room;
  made.expect = scenario.expect;
  return made;
}

Loaded loaded_moody() {
  sim::RoomPolicies policies;
  policies.lock = moody_claim;
  return loaded("smoke.yaml", policies);
}

SeedOutcome outcome_of(const Loaded& loaded, std::uint64_t seed, unsigned recheck_percent) {
  SeedOutcome outcome{};
  SeedDetail detail{};
  run_seed(loaded, sim::Profile::kCalm, seed, recheck_percent, outcome, detail);
  return outcome;
}

TEST(SeedRun, FivePercentAreASampleThatIsAlwaysTheSame) {
  std::size_t sampled = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    sampled += is_sampled(seed, kRecheckPercent) ? 1 : 0;
    EXPECT_TRUE(is_sampled(seed, 100));
    EXPECT_FALSE(is_sampled(seed, 0));
    EXPECT_TRUE(is_sampled(seed, kRecheckPercent + 1) || !is_sampled(seed, kRecheckPercent)) << seed;
  }
  EXPECT_GT(sampled, 400U);
  EXPECT_LT(sampled, 600U);
}

TEST(SeedRun, WhatHoldsIsRunTwiceIfSampled) {
  const Loaded smoke = loaded("smoke.yaml");
  const SeedOutcome once = outcome_of(smoke, 1, 0);
  EXPECT_EQ(once.end, SeedEnd::kHeld);
  EXPECT_FALSE(once.repeated);
  const SeedOutcome twice = outcome_of(smoke, 1, 100);
  EXPECT_TRUE(twice.repeated);
  EXPECT_FALSE(twice.changed);
  EXPECT_EQ(twice.digest, once.digest);
  EXPECT_EQ(exit_code(twice), 0);
}

TEST(SeedRun, WhatFailsIsAlwaysRunTwice) {
  const SeedOutcome failing = outcome_of(loaded("canary.yaml"), 1, 0);
  EXPECT_EQ(failing.end, SeedEnd::kSafety);
  EXPECT_TRUE(failing.repeated);
  EXPECT_FALSE(failing.changed);
}

TEST(SeedRun, APlantedNondeterminismIsReported) {
  const Loaded moody = loaded_moody();
  const SeedOutcome outcome = outcome_of(moody, 1, 100);
  EXPECT_EQ(outcome.end, SeedEnd::kHeld);
  EXPECT_TRUE(outcome.repeated);
  EXPECT_TRUE(outcome.changed);
  EXPECT_EQ(exit_code(outcome), kNondeterministic);
}

TEST(SeedRun, APlantedNondeterminismIsFoundBySamplesOfARange) {
  const Loaded moody = loaded_moody();
  auto pool = SeedPool::make(moody, {.profile = sim::Profile::kCalm, .range = {1, 100}, .jobs = 2});
  ASSERT_TRUE(pool);
  const auto done = (*pool)->run([](const PoolProgress&) {});
  ASSERT_TRUE(done);
  EXPECT_TRUE(*done);
  const SeedCounts counts = count_seeds((*pool)->outcomes());
  EXPECT_EQ(counts.done, 100U);
  EXPECT_GT(counts.repeated, 0U);
  EXPECT_LT(counts.repeated, 20U);
  EXPECT_GT(counts.changed, 0U);
}

TEST(SeedRun, AllOfARangeAreRunTwiceIfAskedTo) {
  const Loaded smoke = loaded("smoke.yaml");
  auto pool = SeedPool::make(smoke, {.profile = sim::Profile::kCalm, .range = {1, 20}, .recheck_percent = 100});
  ASSERT_TRUE(pool);
  ASSERT_TRUE((*pool)->run([](const PoolProgress&) {}));
  const SeedCounts counts = count_seeds((*pool)->outcomes());
  EXPECT_EQ(counts.repeated, 20U);
  EXPECT_EQ(counts.changed, 0U);
}

// The story, the log of causes and the recording only listen: a run is the same with and without them.
TEST(SeedRun, WhoeverListensTheDigestIsTheSame) {
  for (const char* file : {"smoke.yaml", "canary.yaml", "delta/s2_overflow.yaml"}) {
    const Loaded scenario = loaded(file);
    const sim::RunSettings settings = settings_of(scenario, 7, sim::Profile::kHostile);
    const auto quiet = sim::run_once(settings, nullptr);
    ASSERT_TRUE(quiet) << file;
    const test::TempFolder folder;
    auto recorder = sim::open_recording(folder.path() / "listened.db", {*scenario.room, 7, "", "hostile"});
    ASSERT_TRUE(recorder) << file;
    std::FILE* out = std::tmpfile();
    Story story(*scenario.room, out);
    CauseLog log;
    sim::Listeners everybody({&story, &log, recorder->get()});
    const auto told = sim::run_once(settings, &everybody);
    std::fclose(out);
    ASSERT_TRUE(told) << file;
    EXPECT_EQ(told->digest, quiet->digest) << file;
    EXPECT_EQ((*recorder)->digest(), quiet->digest) << file;
    EXPECT_EQ(told->events, quiet->events) << file;
  }
}

// Nothing of a run stays in the process: A, then B, then A again.
TEST(SeedRun, ASeedComesOutTheSameAfterAnother) {
  for (const char* file : {"smoke.yaml", "canary.yaml", "delta/s2_overflow.yaml"}) {
    const Loaded scenario = loaded(file);
    const SeedOutcome first = outcome_of(scenario, 1, 0);
    const SeedOutcome other = outcome_of(scenario, 2, 0);
    const SeedOutcome again = outcome_of(scenario, 1, 0);
    EXPECT_NE(first.digest, other.digest) << file;
    EXPECT_EQ(first.digest, again.digest) << file;
    EXPECT_EQ(first.events, again.events) << file;
  }
}

}  // namespace
}  // namespace areal::cli
