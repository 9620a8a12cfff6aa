// Every scenario of the repository: it ends as it says, and a run is a function of its seed.
#include <gtest/gtest.h>

#include "tests/sim/scenario_runs.h"

namespace areal::sim {
namespace {

using test::read;
using test::settings_of;

class ScenarioFile : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, RunsTwiceToTheSameDigest) {
  const RunSettings settings = settings_of(read(GetParam()), "");
  const auto first = run_once(settings, nullptr);
  const auto second = run_once(settings, nullptr);
  ASSERT_TRUE(first) << first.error().detail;
  ASSERT_TRUE(second) << second.error().detail;
  EXPECT_GT(first->events, 0U);
  EXPECT_EQ(first->digest, second->digest);
  EXPECT_EQ(first->events, second->events);
}

// The canary alone must not end as a right run would: it shows that the judges look.
TEST_P(ScenarioFile, EndsAsItSays) {
  const config::Scenario scenario = read(GetParam());
  const RunSettings settings = settings_of(scenario, "");
  const auto result = run_once(settings, nullptr);
  ASSERT_TRUE(result) << result.error().detail;
  const std::string unmet = unmet_expectation(scenario.expect, *result, *settings.room->setup);
  if (scenario.name != "canary") {
    EXPECT_EQ(unmet, "");
    return;
  }
  EXPECT_EQ(unmet, "expected held, was violation");
  ASSERT_FALSE(result->violations.empty());
  EXPECT_EQ(result->violations.all().front().invariant, InvariantId::kInv1);
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioFile, testing::ValuesIn(test::yaml_files(test::scenario_folder())),
                         test::stem_of);

// Each once broke a promise under some seed of these.
class HardScenario : public testing::TestWithParam<std::string> {};

TEST_P(HardScenario, HoldsUnderManySeeds) {
  RunSettings settings = settings_of(read(GetParam()), "");
  for (settings.seed = 0x90; settings.seed < 0xC0; ++settings.seed) {
    const auto result = run_once(settings, nullptr);
    ASSERT_TRUE(result) << result.error().detail;
    EXPECT_TRUE(result->violations.empty()) << settings.seed << ": " << result->violations.all().front().message;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HardScenario,
                         testing::ValuesIn(test::yaml_files(std::string(AREAL_SOURCE_DIR) + "/tests/data/scenarios")),
                         test::stem_of);

// Its output head shares the storage of the embedding: no tensor of its own, and nothing sent for it.
TEST(Scenarios, AModelWithATiedHeadHolds) {
  config::Scenario scenario = read(test::scenario_folder() + "/smoke.yaml");
  scenario.model.kind = "qwen3_0_6b";
  const auto result = run_once(settings_of(scenario, ""), nullptr);
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->verdict, config::Verdict::kHeld);
  EXPECT_EQ(result->published, 3U);
}

TEST(Scenarios, AnotherSeedIsAnotherRun) {
  RunSettings settings = settings_of(read(test::scenario_folder() + "/smoke.yaml"), "");
  const auto first = run_once(settings, nullptr);
  settings.seed = 2;
  const auto second = run_once(settings, nullptr);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->digest, second->digest);
}

}  // namespace
}  // namespace areal::sim
