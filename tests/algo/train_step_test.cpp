// Steps, frequencies, clipping, seeds, determinism, adapters.
#include "engine/algo/train_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "engine/algo/determinism.h"
#include "engine/algo/gradient_clip.h"
#include "engine/algo/lora_names.h"
#include "engine/algo/sampling_seed.h"
#include "engine/algo/sha256.h"

namespace areal::algo {
namespace {

TEST(TrainStep, WalksThroughEpochs) {
  TrainStep step;
  for (int i = 0; i < 7; ++i) step = step.next(3);
  EXPECT_EQ(step, (TrainStep{2, 1, 7}));
}

TEST(FrequencyControl, TimeIsCountedWithoutAProcessGroup) {
  FrequencyControl control =
      FrequencyControl::create({.epochs = {}, .steps = {}, .time = 10_s, .before_training = false}).value();
  EXPECT_FALSE(control.check(false, 9_s));
  EXPECT_TRUE(control.check(false, 12_s));
  EXPECT_FALSE(control.check(false, 21_s)) << "ten seconds since it was last due";
  EXPECT_TRUE(control.check(true, 22_s));
}

// Asked for before training, an evaluation is due before the first step, not after it.
TEST(FrequencyControl, BeforeTrainingIsBeforeTheFirstStep) {
  FrequencyControl control =
      FrequencyControl::create({.epochs = {}, .steps = 5, .time = {}, .before_training = true}).value();
  EXPECT_TRUE(control.due_before_training());
  EXPECT_FALSE(control.check(false)) << "upstream would be due here, after an update";
  EXPECT_FALSE(control.due_before_training());
}

TEST(FrequencyControl, EachCounterGoesOnByItself) {
  FrequencyControl control =
      FrequencyControl::create({.epochs = 1, .steps = 4, .time = {}, .before_training = false}).value();
  std::vector<bool> due;
  for (int i = 1; i <= 8; ++i) due.push_back(control.check(i == 3));
  EXPECT_EQ(due, (std::vector<bool>{false, false, true, true, false, false, false, true}));
  EXPECT_FALSE(FrequencyControl::create({.epochs = {}, .steps = 0, .time = {}, .before_training = false}));
}

TEST(FrequencyControl, ResumesWhereItWas) {
  const Frequency frequency{.epochs = 2, .steps = 3, .time = 7_s, .before_training = true};
  FrequencyControl whole = FrequencyControl::create(frequency).value();
  for (int step = 1; step <= 40; ++step) {
    FrequencyControl resumed = FrequencyControl::create(frequency).value();
    resumed.resume(whole.state());
    const Duration elapsed = 1_s * (step * 5 / 3);
    EXPECT_EQ(resumed.due_before_training(), whole.due_before_training());
    EXPECT_EQ(resumed.check(step % 5 == 0, elapsed), whole.check(step % 5 == 0, elapsed)) << step;
  }
}

TEST(GradientClip, ShardsMakeNoDifference) {
  const std::vector<float> whole = {3.0F, -4.0F, 12.0F, 0.5F};
  const ClipDecision at_once = decide_clip({{square_sum(whole)}}, 1.0);
  const std::span<const float> all = whole;
  const ClipDecision sharded =
      decide_clip({{square_sum(all.first(1)), square_sum(all.subspan(1, 2)), square_sum(all.subspan(3))}}, 1.0);
  EXPECT_NEAR(sharded.norm, at_once.norm, 1e-14);
  std::vector<float> clipped = whole;
  apply_clip(at_once, clipped);
  EXPECT_NEAR(std::sqrt(square_sum(clipped)), 1.0, 1e-6);
  EXPECT_EQ(decide_clip({}, 1.0).coefficient, 1.0);
  EXPECT_TRUE(decide_clip({}, 1.0).step);
}

// No step is taken, on any shard, and what is left of the gradients is 0 and not a NaN.
TEST(GradientClip, ANormThatIsNotFiniteStopsTheStepOnEveryShard) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> sick = {bad, 1.0F};
    std::vector<float> healthy = {1.0F, 2.0F};
    const ClipDecision decision = decide_clip({{square_sum(healthy), square_sum(sick)}}, 1.0);
    EXPECT_FALSE(decision.step);
    apply_clip(decision, sick);
    apply_clip(decision, healthy);
    EXPECT_EQ(sick, std::vector<float>(2, 0.0F));
    EXPECT_EQ(healthy, std::vector<float>(2, 0.0F));
  }
}

TEST(SamplingSeed, EveryRequestTakesAnIndexAlsoOneWithItsOwnSeed) {
  SessionSeeds session("17:3");
  EXPECT_EQ(session.next(), sampling_seed("17:3", 0));
  EXPECT_EQ(session.next(123), 123U);
  EXPECT_EQ(session.next(), sampling_seed("17:3", 2));
  EXPECT_EQ(session.reserved(), 3U);
}

TEST(SamplingSeed, DependsOnIdentityAndIndexAlone) {
  std::set<std::uint32_t> seeds;
  for (std::uint64_t index = 0; index < 32; ++index) {
    EXPECT_EQ(sampling_seed("5:1", index), sampling_seed("5:1", index));
    seeds.insert(sampling_seed("5:1", index));
    seeds.insert(sampling_seed("5:2", index));
    EXPECT_LT(sampling_seed("5:1", index), 1U << 31U);
  }
  EXPECT_EQ(seeds.size(), 64U);
}

// Added up alone, base and hash can pass 32 bits, which some generators refuse.
TEST(ProcessSeed, StaysWithin32Bits) {
  constexpr std::uint64_t kBase = 0xFFFFFFFF;
  const std::uint64_t unbounded = kBase + sha256("trainer0").back();
  EXPECT_GT(unbounded, kBase) << "the wrong form is not told apart";
  EXPECT_EQ(process_seed(kBase, "trainer0"), unbounded & 0xFFFFFFFF);
  EXPECT_EQ(shuffle_seed(1, 0), 1697189310U);
}

TEST(OwnSeed, OneSeedCannotServeSeveralSamples) {
  EXPECT_FALSE(check_own_seed(true, 4, 42));
  EXPECT_TRUE(check_own_seed(true, 1, 42));
  EXPECT_TRUE(check_own_seed(true, 4, std::nullopt));
  EXPECT_TRUE(check_own_seed(false, 4, 42));
}

TEST(Determinism, IsRefusedOnceTheModelIsBuilt) {
  DeterministicModel late({});
  late.built();
  EXPECT_FALSE(late.make_deterministic());
  EXPECT_FALSE(late.confirm());
  EXPECT_EQ(late.switches(), DeterminismSwitches{}) << "a refusal changes nothing";
}

TEST(Determinism, IsConfirmedAfterTheBuildWithoutTouchingTheBackend) {
  DeterministicModel model({});
  ASSERT_TRUE(model.make_deterministic());
  const DeterminismSwitches built_from = model.switches();
  EXPECT_EQ(built_from, (DeterminismSwitches{true, false, false, "flash"}));
  EXPECT_FALSE(model.confirm()) << "nothing is built yet";
  model.built();
  model.overwrite({false, true, true, "fused"});
  ASSERT_TRUE(model.confirm());
  EXPECT_EQ(model.switches(), (DeterminismSwitches{true, false, false, "fused"}));
}

TEST(Determinism, AnEnvironmentThatComesTooLateIsSaid) {
  EXPECT_TRUE(environment_too_late(true, false));
  EXPECT_FALSE(environment_too_late(true, true));
  EXPECT_FALSE(environment_too_late(false, false));
}

TEST(Determinism, SomeAttentionBackendsDoNotSampleTheSameAgain) {
  for (const char* backend : {"flashinfer", "fa3", "triton"}) EXPECT_TRUE(samples_again(backend)) << backend;
  EXPECT_TRUE(samples_again(std::nullopt));
  EXPECT_FALSE(samples_again("torch_native"));
}

TEST(Adapters, WhatASampleMayStillNameIsLoaded) {
  constexpr std::uint64_t kStaleness = 2;
  const std::uint64_t keep = adapters_kept(kStaleness);
  std::set<std::string> loaded;
  for (std::uint64_t version = 0; version < 20; ++version) {
    const AdapterRequests requests = adapter_requests("lora", version, keep);
    loaded.insert(requests.load);
    if (requests.unload) loaded.erase(*requests.unload);
    for (std::uint64_t named = version >= kStaleness + 1 ? version - kStaleness - 1 : 0; named <= version; ++named) {
      EXPECT_TRUE(loaded.contains(adapter_name("lora", named))) << named << " at " << version;
    }
    EXPECT_LE(loaded.size(), keep);
  }
}

// A refresh keeps earlier names. Were they dropped, a request under way would fail for its name.
TEST(Adapters, AnEarlierNameIsServedByTheNewestWeights) {
  AdapterAliases aliases("lora", adapters_kept(2));
  for (std::uint64_t version = 0; version <= 10; ++version) aliases.refresh(version);
  EXPECT_EQ(aliases.serving("lora-v8"), 10U);
  EXPECT_EQ(aliases.serving("lora-v7"), 10U);
  EXPECT_FALSE(aliases.serving("lora-v6"));
  EXPECT_FALSE(aliases.serving("lora-v11"));
  EXPECT_FALSE(aliases.serving("other-v10"));
  EXPECT_EQ(aliases.names().size(), 4U);
}

TEST(Adapters, KeysLoseTheAdaptersNameOnlyWhereItStands) {
  EXPECT_EQ(peft_key("a.lora_A.default.weight"), "a.lora_A.weight");
  EXPECT_EQ(peft_key("a.lora_A.weight"), "a.lora_A.weight");
  EXPECT_EQ(peft_key("a.default.lora_A.weight"), "a.default.lora_A.weight");
  EXPECT_EQ(peft_key("default.weight"), "default.weight");
}

}  // namespace
}  // namespace areal::algo
