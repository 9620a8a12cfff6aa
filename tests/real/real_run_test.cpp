// The same protocols in real processes: the history of the simulation, an exact replay, faults survived, nothing left.
#include <signal.h>

#include "tests/real/program.h"

namespace areal::test {
namespace {

class RealRun : public testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  // Runs to its end and expects status 0.
  std::string run(std::vector<std::string> arguments) {
    std::string words;
    for (const std::string& word : arguments) words += word + " ";
    Program program(folder_.path(), std::move(arguments));
    EXPECT_EQ(program.wait(), 0) << words << '\n' << program.output();
    return program.output();
  }
  // Starts a run and returns its id once it has published an update.
  std::string start(std::unique_ptr<Program>& program) {
    program = std::make_unique<Program>(
        folder_.path(), std::vector<std::string>{"real", source_file("scenarios/real_small.yaml"), "--seed", "1"});
    EXPECT_TRUE(program->wait_for("v1 ")) << program->output();
    const auto folder = run_folder_in(folder_.path());
    EXPECT_TRUE(folder);
    return folder ? folder->run_id() : "none_at_all";
  }

  TempFolder folder_;
};

TEST_F(RealRun, HasTheHistoryOfTheSimulationAndReplaysExactly) {
  const std::string scenario = source_file("scenarios/real_small.yaml");
  run({"real", scenario, "--seed", "3", "--record", at("real.db")});
  EXPECT_FALSE(run_folder_in(folder_.path()));
  const std::string replayed = run({"replay", at("real.db"), "--all-nodes"});
  EXPECT_NE(replayed.find("EQUAL"), std::string::npos) << replayed;
  run({scenario, "--seed", "3", "--record", at("sim.db")});
  const std::string compared = run({"diff", "--history", at("real.db"), at("sim.db")});
  EXPECT_NE(compared.find("equal up to time"), std::string::npos) << compared;
}

TEST_F(RealRun, SurvivesLateLostAndDoubledMessagesAndRanksThatStandStill) {
  const std::string said =
      run({"real", source_file("tests/data/scenarios/real_faults.yaml"), "--seed", "2", "--record", at("faults.db")});
  for (const char* fault : {"duplicate_message", "hang engine.0.rank.0", "hang trainer.1", "slow_link"}) {
    EXPECT_NE(said.find(fault), std::string::npos) << said;
  }
  run({"replay", at("faults.db"), "--all-nodes"});
}

TEST_F(RealRun, AnExpectationThatIsNotMetIsAFailure) {
  Program program(folder_.path(), {"real", source_file("scenarios/real_small.yaml"), "--seed", "1", "--set",
                                   "work.updates=2", "--set", "expect={end: connect_failed}", "--set", "faults=[]"});
  EXPECT_EQ(program.wait(), 1) << program.output();
  EXPECT_NE(program.output().find("expectation not met"), std::string::npos) << program.output();
}

TEST_F(RealRun, AScenarioWithADefectIsRefused) {
  Program program(folder_.path(),
                  {"real", source_file("scenarios/gaps/gap02_ignore_update_error.yaml"), "--seed", "1"});
  EXPECT_EQ(program.wait(), 64) << program.output();
  EXPECT_NE(program.output().find("defect"), std::string::npos) << program.output();
}

TEST_F(RealRun, AfterAnInterruptNothingIsLeft) {
  std::unique_ptr<Program> program;
  const std::string id = start(program);
  program->signal(SIGINT);
  EXPECT_EQ(program->wait(), 130) << program->output();
  EXPECT_EQ(left_of(id, std::chrono::seconds(0)), std::vector<std::string>{});
  EXPECT_FALSE(run_folder_in(folder_.path()));
}

TEST_F(RealRun, WhenNobodyReadsItsOutputNothingIsLeft) {
  std::unique_ptr<Program> program;
  const std::string id = start(program);
  program->stop_reading();
  EXPECT_EQ(program->wait(), 130);
  EXPECT_EQ(left_of(id, std::chrono::seconds(0)), std::vector<std::string>{});
  EXPECT_FALSE(run_folder_in(folder_.path()));
}

TEST_F(RealRun, TheDeathOfTheStarterLeavesNoProcessAndItsRecordingsCanBeMerged) {
  std::unique_ptr<Program> program;
  const std::string id = start(program);
  program->signal(SIGKILL);
  EXPECT_EQ(program->wait(), -SIGKILL);
  EXPECT_EQ(left_of(id, std::chrono::seconds(5)), std::vector<std::string>{});
  const auto folder = run_folder_in(folder_.path());
  ASSERT_TRUE(folder);
  Program merge(folder_.path(), {"merge", at("what_was.db"), folder->recordings().string()});
  EXPECT_EQ(merge.wait(), 2) << merge.output();
  EXPECT_NE(merge.output().find("INCONCLUSIVE"), std::string::npos) << merge.output();
}

}  // namespace
}  // namespace areal::test
