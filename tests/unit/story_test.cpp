// The story of a run claims no more than what happened.
#include "sim/cli/story.h"

#include <gtest/gtest.h>

#include "sim/explore/listeners.h"
#include "tests/sim/scenario_runs.h"

namespace areal::cli {
namespace {

struct Told {
  std::string text;
  Story::Totals totals;
};

Told told(const std::string& file, const std::vector<config::Override>& sets) {
  const std::string path = (std::filesystem::path(AREAL_SOURCE_DIR) / "scenarios" / file).string();
  const config::ReadScenario read = config::read_scenario_file(path, sets);
  EXPECT_TRUE(read.scenario) << config::refusal_text(path, read.problems);
  const sim::RunSettings settings = test::settings_of(read.scenario.value_or(config::Scenario{}), "");
  std::FILE* out = std::tmpfile();
  Story story(*settings.room, out);
  sim::Listeners forward({&story});
  EXPECT_TRUE(sim::run_once(settings, &forward));
  Told result{std::string(static_cast<std::size_t>(std::ftell(out)), ' '), story.totals()};
  EXPECT_EQ(std::fseek(out, 0, SEEK_SET), 0);
  EXPECT_EQ(std::fread(result.text.data(), 1, result.text.size(), out), result.text.size());
  std::fclose(out);
  return result;
}

constexpr std::string_view kFromMemory = "answered from memory";

TEST(Story, ARequestThatIsAskedAgainAfterItsVersionWasPublishedIsAnsweredFromMemory) {
  const Told run =
      told("smoke.yaml", {"faults=[]",
                          "rules=[{id: lost_answer, on: {message: update_reply, node: gateway, version: 2, "
                          "occurrence: 1}, do: drop}]"});
  EXPECT_EQ(run.totals.asked_again, 1U);
  EXPECT_NE(run.text.find(kFromMemory), std::string::npos) << run.text;
}

// After a recovery the same version is moved again: its request waits, and nothing was answered yet.
TEST(Story, ARequestOfANewHistoryIsNotAnsweredFromTheOldOne) {
  const Told run = told("recovery/recover_every_5.yaml",
                        {"train.checkpoint=7",
                         "faults[1]={do: kill, node: trainer.1, when: {input: compute_done, node: trainer.0, "
                         "what: load_checkpoint, occurrence: 1}}"});
  EXPECT_GT(run.totals.asked_again, 0U);
  EXPECT_EQ(run.text.find(kFromMemory), std::string::npos) << run.text;
}

}  // namespace
}  // namespace areal::cli
