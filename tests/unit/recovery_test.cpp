// Recovery of training: wherever a rank dies, the run ends as if none had, and nothing is announced that nobody holds.
#include <gtest/gtest.h>

#include "tests/unit/recovery_world.h"

namespace areal::test {
namespace {

using port::LoopPhase;
using port::RunEnd;
using proto::LoopState;
using proto::TrainLoopOptions;

constexpr std::uint32_t kUpdates = 3;

TrainLoopOptions with_checkpoints(std::uint32_t every) {
  TrainLoopOptions options;
  options.updates = kUpdates;
  options.checkpoint_every = every;
  return options;
}

// What every run must come to, with or without deaths.
void expect_whole(const RecoveryWorld& world, const std::string& how) {
  SCOPED_TRACE(how);
  ASSERT_TRUE(world.ended.has_value());
  EXPECT_EQ(world.ended->end, RunEnd::kCompleted);
  EXPECT_EQ(world.ended->version, kUpdates);
  EXPECT_EQ(world.published.back().version, kUpdates);
  EXPECT_EQ(world.ports_kept(), 0U);
  // The step whose gradients were not finite was skipped by all, however often it was made.
  for (const port::StepTrained& step : world.steps) EXPECT_EQ(step.optimizer_steps, step.version == 2 ? 0U : 1U);
}

std::size_t events_without_a_death(std::uint32_t every) {
  RecoveryWorld world(with_checkpoints(every));
  std::size_t events = 0;
  while (!world.ended.has_value() && world.step()) ++events;
  expect_whole(world, "no death");
  EXPECT_EQ(world.worlds.size(), 1U);
  return events;
}

std::size_t count_of(const RecoveryWorld& world, LoopPhase phase) {
  return static_cast<std::size_t>(std::ranges::count(world.phases, phase));
}

// Lets the loop come to `state` of step `step`, kills a rank there, and lets the run end.
RecoveryWorld die_in(LoopState state, Version version, std::uint32_t every, std::uint32_t rank = 1) {
  RecoveryWorld world(with_checkpoints(every));
  while (world.loop().state() != state || world.loop().version() != version) {
    if (!world.step()) break;
  }
  EXPECT_EQ(world.loop().state(), state);
  world.kill(rank, true);
  world.run();
  expect_whole(world, std::string(to_text(state)));
  return world;
}

// ---- Everywhere ----

class RecoveryEverywhere : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RecoveryEverywhere, ADeathBeforeAnyEventIsRecoveredFrom) {
  const std::size_t events = events_without_a_death(GetParam());
  for (std::size_t before = 0; before < events; ++before) {
    for (std::uint32_t how = 0; how < 2 * RecoveryWorld::kRanks; ++how) {
      const std::uint32_t rank = how / 2;
      RecoveryWorld world(with_checkpoints(GetParam()));
      for (std::size_t i = 0; i < before; ++i) world.step();
      world.kill(rank, how % 2 == 1);
      world.run();
      expect_whole(world, "death of rank " + std::to_string(rank) + " before event " + std::to_string(before));
      if (HasFailure()) return;
    }
  }
}

TEST_P(RecoveryEverywhere, TwoDeathsAnywhereAreRecoveredFrom) {
  const std::size_t events = events_without_a_death(GetParam());
  for (std::size_t first = 0; first < events; first += 3) {
    for (std::size_t later = 0; later < 120; later += 2) {
      RecoveryWorld world(with_checkpoints(GetParam()));
      for (std::size_t i = 0; i < first; ++i) world.step();
      world.kill(1, first % 2 == 1);
      for (std::size_t i = 0; i < later; ++i) world.step();
      if (world.ended.has_value()) break;
      world.kill(later % 4 == 0 ? 2 : 1, later % 3 == 0);
      world.run();
      expect_whole(world, "deaths before events " + std::to_string(first) + " and " + std::to_string(first + later));
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, RecoveryEverywhere, testing::Values(0U, 1U, 2U, 3U));

// ---- Phase by phase, a checkpoint of every step ----

TEST(Recovery, InCollectAndTrainThePresentStepIsMadeAgainOfTheSameBatch) {
  for (const LoopState state : {LoopState::kCollecting, LoopState::kTraining}) {
    const RecoveryWorld world = die_in(state, 1, 1);
    ASSERT_EQ(world.worlds.size(), 2U);
    EXPECT_EQ(world.worlds[1].training_epoch, 2U);
    EXPECT_EQ(world.worlds[1].version, 1U);
    EXPECT_TRUE(world.resets.empty());
    EXPECT_EQ(count_of(world, LoopPhase::kCollect), kUpdates + 1);
    EXPECT_EQ(world.published.size(), kUpdates);
  }
}

// The info names the checkpoint before until the last of its four values is written.
TEST(Recovery, InTheCheckpointWhatCountsIsWhetherItsInfoNamesIt) {
  EXPECT_EQ(die_in(LoopState::kSaving, 1, 1).worlds.at(1).version, 1U);
  for (int values = 1; values <= 4; ++values) {
    RecoveryWorld world(with_checkpoints(1));
    while (world.loop().state() != LoopState::kWritingInfo || world.loop().version() != 1) ASSERT_TRUE(world.step());
    for (int i = 1; i < values; ++i) world.step();
    world.kill(1, true);
    world.run();
    expect_whole(world, std::to_string(values) + " values");
    EXPECT_EQ(world.worlds.at(1).version, values == 4 ? 2U : 1U);
  }
  EXPECT_EQ(die_in(LoopState::kPausing, 1, 1).worlds.at(1).version, 2U);
}

TEST(Recovery, FromThePauseUntilTheVersionIsSetTheUpdateIsMadeAgain) {
  for (const LoopState state : {LoopState::kPausing, LoopState::kUpdating, LoopState::kContinuing,
                                LoopState::kSettingTrainers, LoopState::kSettingEngines, LoopState::kSettingRouter}) {
    const RecoveryWorld world = die_in(state, 1, 1);
    EXPECT_EQ(world.worlds.at(1).version, 2U);
    EXPECT_TRUE(world.resets.empty());
    EXPECT_EQ(count_of(world, LoopPhase::kTrain), kUpdates);  // It was trained: it is not trained again.
  }
}

TEST(Recovery, AStepThatWasPublishedIsOnlyCleared) {
  const RecoveryWorld world = die_in(LoopState::kClearing, 2, 1);
  EXPECT_EQ(world.worlds.at(1).version, 2U);
  EXPECT_EQ(world.published.size(), kUpdates);
  EXPECT_EQ(count_of(world, LoopPhase::kClear), kUpdates + 1);
}

TEST(Recovery, ARestoredCheckpointIsSaidWithTheCountOfItsVersion) {
  const RecoveryWorld world = die_in(LoopState::kTraining, 2, 1);
  const auto restored = std::ranges::find(world.infos, true, &port::CheckpointInfo::restored);
  ASSERT_NE(restored, world.infos.end());
  EXPECT_EQ(restored->version, 2U);
  EXPECT_EQ(restored->step, 2U);
  EXPECT_EQ(restored->accepted, 16);
  const auto written = std::ranges::find(world.infos, 2U, &port::CheckpointInfo::version);
  EXPECT_EQ(restored->digest, written->digest);
}

// The bytes of a step that is made again of the same batch are those of a run without a death.
TEST(Recovery, WithoutARollBackTheWeightsAreThoseOfARunWithoutADeath) {
  RecoveryWorld quiet(with_checkpoints(1));
  quiet.run();
  const RecoveryWorld world = die_in(LoopState::kTraining, 1, 1);
  EXPECT_EQ(world.published.at(1).bytes, quiet.published.at(1).bytes);
}

// ---- Roll-back ----

TEST(Recovery, WhatEnginesHoldBeyondTheCheckpointIsVoidAndTheOldVersionIsMovedAgain) {
  RecoveryWorld world(with_checkpoints(2));
  while (world.loop().version() != 3) ASSERT_TRUE(world.step());
  world.kill(0, true);
  world.run();
  expect_whole(world, "after version 3");
  ASSERT_EQ(world.resets.size(), 1U);
  EXPECT_EQ(world.resets[0].version, 2U);
  std::vector<Version> versions;
  for (const auto& published : world.published) versions.push_back(published.version);
  EXPECT_EQ(versions, (std::vector<Version>{1, 2, 3, 2, 3}));
  EXPECT_EQ(world.published[3].bytes, world.published[1].bytes);
  EXPECT_NE(world.published[4].bytes, world.published[2].bytes);  // Another batch: another history.
  EXPECT_EQ(world.published[4].training_epoch, 2U);
}

TEST(Recovery, WithoutAnyCheckpointAllBeginsAnew) {
  const RecoveryWorld world = die_in(LoopState::kTraining, 2, 0);
  ASSERT_EQ(world.resets.size(), 1U);
  EXPECT_EQ(world.resets[0].version, 0U);
  EXPECT_EQ(world.worlds.at(1).version, 0U);
}

// ---- What cannot be recovered ----

TEST(Recovery, OtherWeightsThanTheInfoNamesEndTheRun) {
  RecoveryWorld world(with_checkpoints(1));
  while (world.loop().state() != LoopState::kTraining || world.loop().version() != 1) ASSERT_TRUE(world.step());
  world.spoil(2);
  world.kill(1);
  world.run();
  ASSERT_TRUE(world.ended.has_value());
  EXPECT_EQ(world.ended->end, RunEnd::kRecoveryFailed);
  EXPECT_EQ(world.published.size(), 1U);
}

TEST(Recovery, TheNumberOfRecoveriesIsBounded) {
  TrainLoopOptions options = with_checkpoints(1);
  options.max_recoveries = 2;
  RecoveryWorld world(options);
  for (int death = 0; death < 3; ++death) {
    while (world.loop().state() != LoopState::kTraining) ASSERT_TRUE(world.step());
    world.kill(1);
    while (world.loop().state() == LoopState::kTraining) ASSERT_TRUE(world.step());
  }
  ASSERT_TRUE(world.ended.has_value());
  EXPECT_EQ(world.ended->end, RunEnd::kRecoveryFailed);
}

}  // namespace
}  // namespace areal::test
