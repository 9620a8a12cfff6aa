// Judges that are timed find and count what they would find anyhow.
#include "sim/cli/judge_profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/explore/run.h"
#include "tests/sim/scenario_runs.h"

namespace areal::cli {
namespace {

TEST(JudgeProfile, ChangesNothingAndNamesEveryJudge) {
  sim::RunSettings settings = test::settings_of(test::read(fmt::format("{}/smoke.yaml", test::scenario_folder())), "");
  const auto plain = sim::run_once(settings, nullptr);
  JudgeProfile profile;
  settings.wrapper = &profile;
  const auto timed = sim::run_once(settings, nullptr);
  ASSERT_TRUE(plain && timed);
  EXPECT_EQ(timed->digest, plain->digest);
  EXPECT_EQ(timed->blind, plain->blind);
  EXPECT_EQ(timed->measures.size(), plain->measures.size());
  const std::string table = profile.table(1.0);
  const auto judges = sim::make_judges(settings.room->setup);
  for (const auto& judge : judges.all()) {
    EXPECT_NE(table.find(std::string(judge->name())), std::string::npos) << table;
  }
}

}  // namespace
}  // namespace areal::cli
