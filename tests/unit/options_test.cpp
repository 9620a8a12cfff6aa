// The command line: what is taken, and that everything else is refused with exit 64 and a sentence that helps.
#include "sim/cli/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/cli/command.h"
#include "sim/cli/option_table.h"

namespace areal::cli {
namespace {

const std::string kSmoke = std::string(AREAL_SOURCE_DIR) + "/scenarios/smoke.yaml";

// A file that is there, so that its name can stand for a recording.
class Options : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "areal_options_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directory(folder_);
    run_db_ = folder_ + "/run.db";
    std::ofstream(run_db_) << "x";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static ParsedArguments parse(std::vector<std::string> words) {
    words.insert(words.begin(), "areal-sim");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return parse_arguments(static_cast<int>(words.size()), pointers.data());
  }

  static Arguments good(const std::vector<std::string>& words) {
    ParsedArguments parsed = parse(words);
    EXPECT_TRUE(parsed.arguments.has_value());
    return parsed.arguments.value_or(Arguments{});
  }

  // What is said on stderr.
  static std::string refused(const std::vector<std::string>& words) {
    testing::internal::CaptureStderr();
    const ParsedArguments parsed = parse(words);
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_FALSE(parsed.arguments.has_value()) << said;
    EXPECT_EQ(parsed.exit_code, kBadUsage) << said;
    return said;
  }

  std::string folder_;
  std::string run_db_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Options, AScenarioAloneIsARun) {
  const Arguments arguments = good({kSmoke});
  EXPECT_EQ(arguments.program, "areal-sim");
  EXPECT_EQ(arguments.command, "run");
  EXPECT_EQ(arguments.files, std::vector<std::string>{kSmoke});
  EXPECT_FALSE(arguments.seed.has_value());
  EXPECT_EQ(good({"run", kSmoke}).files, std::vector<std::string>{kSmoke});
}

TEST_F(Options, EveryOptionOfARunIsTaken) {
  const Arguments arguments =
      good({kSmoke, "--seed", "0x2A", "--profile=hostile", "--until", "45s", "--set", "a=1,2", "--set", "b.c=x=y",
            "--half", "without_defect", "--record", "r.db", "--json", "-", "--junit", "j.xml", "--quiet"});
  EXPECT_EQ(arguments.seed, 42U);
  EXPECT_EQ(arguments.profile, sim::Profile::kHostile);
  EXPECT_EQ(arguments.until, "45s");
  // A comma is part of a value, not the end of one.
  EXPECT_EQ(arguments.sets, (std::vector<std::string>{"a=1,2", "b.c=x=y"}));
  EXPECT_EQ(arguments.half, Half::kWithoutDefect);
  EXPECT_EQ(arguments.record, "r.db");
  EXPECT_EQ(arguments.json, "-");
  EXPECT_EQ(arguments.junit, "j.xml");
  EXPECT_TRUE(arguments.quiet);
}

TEST_F(Options, SeedsAreARangeWithBothEnds) {
  const Arguments arguments = good({kSmoke, "--seeds", "1..0x10", "--jobs", "2"});
  ASSERT_TRUE(arguments.seeds.has_value());
  EXPECT_EQ(arguments.seeds->first, 1U);
  EXPECT_EQ(arguments.seeds->last, 16U);
  EXPECT_EQ(arguments.jobs, 2U);
  EXPECT_EQ(arguments.recheck_percent, 5U);
  for (const char* all : {"100", "100%"}) {
    EXPECT_EQ(good({kSmoke, "--seeds", "1..2", "--recheck", all}).recheck_percent, 100U);
  }
  EXPECT_EQ(good({kSmoke, "--seed", "18446744073709551615"}).seed, UINT64_MAX);
}

TEST_F(Options, NumbersAreWholeAndInRange) {
  for (const char* seed : {"", "3z", "-1", "1.5", "0x", "18446744073709551616", " 3"}) {
    refused({kSmoke, std::string("--seed=") + seed});
  }
  for (const char* seeds : {"5", "5..", "..5", "9..3", "1...3", "0..10000000"}) refused({kSmoke, "--seeds", seeds});
  for (const char* jobs : {"0", "257", "two"}) refused({kSmoke, "--seeds", "1..2", "--jobs", jobs});
  for (const char* percent : {"101", "-1", "%", "some", "5.5"}) {
    refused({kSmoke, "--seeds", "1..2", std::string("--recheck=") + percent});
  }
  for (const char* until : {"45", "18204"}) EXPECT_EQ(good({kSmoke, "--until", until}).until, until);
  for (const char* until : {"0", "0s", "soon", "-3s", "1.5s"}) refused({kSmoke, std::string("--until=") + until});
}

TEST_F(Options, WhatContradictsIsRefused) {
  EXPECT_TRUE(contains(refused({kSmoke, "--seed", "1", "--seeds", "1..2"}), "--seed and --seeds cannot go together"));
  EXPECT_TRUE(contains(refused({kSmoke, "--record", "r.db", "--seeds", "1..2"}), "cannot go together"));
  EXPECT_TRUE(contains(refused({kSmoke, "--until", "5s", "--seeds", "1..2"}), "cannot go together"));
  EXPECT_TRUE(contains(refused({kSmoke, "--profile-judges", "--seeds", "1..2"}), "cannot go together"));
  EXPECT_TRUE(contains(refused({kSmoke, "--seed", "1", "--seed", "2"}), "given twice"));
  EXPECT_TRUE(contains(refused({kSmoke, "--jobs", "2"}), "--jobs needs --seeds"));
  EXPECT_TRUE(contains(refused({kSmoke, "--recheck", "9"}), "--recheck needs --seeds"));
  EXPECT_TRUE(contains(refused({"dump", run_db_, "--from", "9", "--to", "3"}), "--from lies behind --to"));
  EXPECT_TRUE(contains(refused({"diff", run_db_, run_db_, "--seed", "1"}), "does not belong to 'diff'"));
}

TEST_F(Options, FilesThatCannotBeWrittenAreRefusedBeforeTheRun) {
  for (const char* option : {"--record", "--json", "--junit"}) {
    EXPECT_TRUE(contains(refused({kSmoke, option, folder_}), "is a folder; name a file in it"));
    EXPECT_TRUE(contains(refused({kSmoke, option, folder_ + "/new/"}), "is a folder; name a file in it"));
    EXPECT_TRUE(contains(refused({kSmoke, option, folder_ + "/none/r"}), "No such file or directory"));
    good({kSmoke, option, folder_ + "/r"});
  }
  EXPECT_EQ(good({kSmoke, "--json", "-"}).json, "-");
}

TEST_F(Options, MistakesAreNamedWithWhatWasMeant) {
  EXPECT_TRUE(contains(refused({kSmoke, "--sed", "1"}), "unknown option '--sed'; did you mean '--seed'?"));
  EXPECT_TRUE(contains(refused({kSmoke, "-x"}), "unknown option '-x'"));
  EXPECT_TRUE(contains(refused({kSmoke, "--profile", "hostil"}), "did you mean 'hostile'?"));
  EXPECT_TRUE(contains(refused({kSmoke, "--seed"}), "--seed needs a value"));
  EXPECT_TRUE(contains(refused({kSmoke, "--record", "--quiet"}), "--record needs a value"));
  EXPECT_TRUE(contains(refused({kSmoke, "--quiet=1"}), "--quiet takes no value"));
  EXPECT_TRUE(contains(refused({kSmoke, "--set", "work.updates"}), "write KEY=VALUE"));
  EXPECT_TRUE(contains(refused({"rnu"}), "did you mean 'run'?"));
  EXPECT_TRUE(
      contains(refused({std::string(AREAL_SOURCE_DIR) + "/scenarios/smoek.yaml"}), "did you mean 'smoke.yaml'?"));
  EXPECT_TRUE(contains(refused({folder_}), "is a folder"));
  EXPECT_TRUE(contains(refused({run_db_}), "areal-sim replay"));
  EXPECT_TRUE(contains(refused({"replay", kSmoke}), "wants a recording"));
  EXPECT_TRUE(contains(refused({"catalogue", "rum"}), "did you mean 'run'?"));
  refused({});
  refused({"diff", run_db_});
  refused({"dump", run_db_, run_db_});
  refused({"doctor", "x"});
}

TEST_F(Options, OtherSubcommandsTakeTheirWords) {
  EXPECT_EQ(good({"diff", run_db_, run_db_}).files.size(), 2U);
  EXPECT_FALSE(good({"diff", run_db_, run_db_}).history);
  EXPECT_TRUE(good({"diff", "--history", run_db_, run_db_}).history);
  EXPECT_TRUE(contains(refused({"dump", run_db_, "--history"}), "does not belong to 'dump'"));
  EXPECT_TRUE(good({"replay", run_db_, "--decisions"}).from_decisions);
  const Arguments dump = good({"dump", run_db_, "--node", "engine.*", "--kind", "told", "--from", "3", "--to", "9"});
  EXPECT_EQ(dump.node, "engine.*");
  EXPECT_EQ(dump.kind, "told");
  EXPECT_EQ(dump.from, 3U);
  EXPECT_EQ(dump.to, 9U);
  EXPECT_EQ(good({"catalogue", "run", "H06", "H15"}).files, (std::vector<std::string>{"run", "H06", "H15"}));
  EXPECT_EQ(good({"doctor"}).command, "doctor");
  EXPECT_EQ(good({"schema"}).command, "schema");
}

// The environment fills in what the command line leaves open, and never contradicts it.
TEST_F(Options, TheEnvironmentComesSecond) {
  setenv("AREAL_SIM_SEED", "7", 1);
  setenv("AREAL_SIM_QUIET", "1", 1);
  setenv("AREAL_SIM_SET", "work.updates=2;links.latency=1ms", 1);
  EXPECT_EQ(good({kSmoke}).seed, 7U);
  EXPECT_EQ(good({kSmoke, "--seed", "8"}).seed, 8U);
  EXPECT_FALSE(good({kSmoke, "--seeds", "1..2"}).seed.has_value());
  EXPECT_TRUE(good({kSmoke}).quiet);
  EXPECT_EQ(good({kSmoke, "--set", "work.updates=3"}).sets,
            (std::vector<std::string>{"work.updates=2", "links.latency=1ms", "work.updates=3"}));
  EXPECT_FALSE(good({"diff", run_db_, run_db_}).seed.has_value());
  setenv("AREAL_SIM_SEED", "seven", 1);
  EXPECT_TRUE(contains(refused({kSmoke}), "not a whole number"));
  setenv("AREAL_SIM_SEED", "", 1);
  setenv("AREAL_SIM_QUIET", "yes", 1);
  refused({kSmoke});
  for (const char* name : {"AREAL_SIM_SEED", "AREAL_SIM_QUIET", "AREAL_SIM_SET"}) unsetenv(name);
}

TEST_F(Options, HelpNamesEverySubcommandAndOption) {
  testing::internal::CaptureStdout();
  const ParsedArguments parsed = parse({"--help"});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_FALSE(parsed.arguments.has_value());
  EXPECT_EQ(parsed.exit_code, 0);
  for (const CommandRow& row : command_rows()) EXPECT_TRUE(contains(text, "areal-sim " + std::string(row.form)));
  for (const OptionRow& row : option_rows()) EXPECT_TRUE(contains(text, "--" + std::string(row.name)));
  EXPECT_TRUE(contains(text, "130  interrupted"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse({"diff", "--help"}).exit_code, 0);
  const std::string of_diff = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(of_diff, "areal-sim diff A.db B.db"));
  EXPECT_TRUE(contains(of_diff, "--history"));
  EXPECT_FALSE(contains(of_diff, "--seed"));
}

}  // namespace
}  // namespace areal::cli
