// Every known failure: found as its scenario names it, and only with its defect.
#include "sim/explore/catalogue.h"

#include <gtest/gtest.h>

#include <fstream>

#include "sim/explore/refused_files.h"
#include "tests/sim/scenario_runs.h"

namespace areal::sim {
namespace {

using test::read;
using test::settings_of;

std::vector<std::string> entries() { return catalogue_files(test::scenario_folder()); }

class CatalogueEntry : public testing::TestWithParam<std::string> {};

TEST_P(CatalogueEntry, IsFoundAsNamedAndIsCleanWithoutWhateverTheSeed) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto report = run_catalogue_entry(GetParam(), seed);
    ASSERT_TRUE(report) << report.error().detail;
    EXPECT_TRUE(report->found) << "seed " << seed << ": " << report->with;
    EXPECT_TRUE(report->clean) << "seed " << seed << ": " << report->without;
  }
}

// What it says of the half with the defect is no sentence that every run fulfils.
TEST_P(CatalogueEntry, ItsFindingIsNotThereWithoutTheDefect) {
  const config::Scenario scenario = read(GetParam());
  const RunSettings settings = settings_of(scenario, "");
  const auto result = run_once(settings, nullptr);
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_NE(unmet_expectation(*scenario.expect_defect, *result, *settings.room->setup), "");
}

TEST_P(CatalogueEntry, SaysWhoMustNoticeAndIsNamedAfterItsFile) {
  const config::Scenario scenario = read(GetParam());
  EXPECT_EQ(scenario.name, std::filesystem::path(GetParam()).stem().string());
  EXPECT_FALSE(scenario.defect_seat.empty());
  const config::ExpectSettings& with = *scenario.expect_defect;
  if (scenario.defect_seat == "guard") {
    // It says why it refuses, or its run says that it could not go on.
    ASSERT_TRUE(with.end.has_value());
    EXPECT_TRUE(!with.refused.empty() || *with.end == port::RunEnd::kRecoveryFailed);
  } else {
    EXPECT_TRUE(find_invariant(with.invariant).has_value()) << with.invariant;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CatalogueEntry, testing::ValuesIn(entries()), test::stem_of);

TEST(Catalogue, HasAnEntryForEveryDefect) {
  std::vector<std::string> used;
  for (const std::string& file : entries()) used.push_back(read(file).defect);
  for (const Defect& defect : all_defects()) {
    EXPECT_GT(std::ranges::count(used, std::string(defect.name)), 0) << defect.name;
  }
  EXPECT_GE(used.size(), 28U);
}

// Each defect is found under its own name: what an entry names is not there with the defect of another.
TEST_P(CatalogueEntry, NoOtherDefectIsTakenForItsOwn) {
  const config::Scenario scenario = read(GetParam());
  if (scenario.interleave.has_value()) return;  // It is about the order of its events.
  for (const Defect& other : all_defects()) {
    if (other.name == scenario.defect) continue;
    RunSettings settings = settings_of(scenario, std::string(other.name));
    settings.stop_on_violation = false;
    const auto result = run_once(settings, nullptr);
    if (!result) continue;  // Its rules name nodes that this room lacks.
    EXPECT_NE(unmet_expectation(*scenario.expect_defect, *result, *settings.room->setup), "") << other.name;
  }
}

TEST(Catalogue, WrongFilesAreRefusedWithAllThatTheyName) {
  const std::vector<std::string> files = refused_files(test::scenario_folder());
  EXPECT_GE(files.size(), 3U);
  for (const std::string& file : files) {
    const auto report = check_refused_file(file);
    ASSERT_TRUE(report) << report.error().detail;
    EXPECT_TRUE(report->as_named) << file << ": " << report->lacks;
  }
}

TEST(Catalogue, AFileThatIsNotRefusedOrSaysNothingIsTold) {
  EXPECT_FALSE(check_refused_file(test::scenario_folder() + "/smoke.yaml"));
  const std::string file = testing::TempDir() + "x99_right.yaml";
  std::ofstream(file) << "scenario:\n  name: right\n#! 2 | scenario.name | is too short\n";
  const auto right = check_refused_file(file);
  ASSERT_TRUE(right);
  EXPECT_EQ(right->source, "X99");
  EXPECT_FALSE(right->as_named);
  std::ofstream(file) << "scenario:\n  name: 7\n  wrong: 1\n#! 3 | scenario.wrong | unknown key\n#! 4 | a | b\n";
  const auto more = check_refused_file(file);
  ASSERT_TRUE(more);
  EXPECT_NE(more->lacks.find("nothing is told of line 4"), std::string::npos) << more->lacks;
  std::ofstream(file) << "scenario:\n#! 3, scenario.wrong\n";
  EXPECT_FALSE(check_refused_file(file));
}

TEST(Catalogue, AFileWithoutADefectIsRefused) {
  EXPECT_FALSE(run_catalogue_entry(test::scenario_folder() + "/smoke.yaml", 1));
}

TEST(Catalogue, AnotherDefectIsNotTakenForTheNamedOne) {
  const config::Scenario scenario = read(test::scenario_folder() + "/reports/h20_constant_barrier_key.yaml");
  RunSettings settings = settings_of(scenario, "plan_from_storage_dtype");
  settings.stop_on_violation = false;
  const auto result = run_once(settings, nullptr);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->violations.empty());
  EXPECT_NE(unmet_expectation(*scenario.expect_defect, *result, *settings.room->setup), "");
}

TEST(Catalogue, AnUnknownDefectIsAnsweredWithTheNearestOne) {
  const auto parts = parts_of_defect("not_idempotant");
  ASSERT_FALSE(parts);
  EXPECT_NE(parts.error().detail.find("did you mean 'not_idempotent'"), std::string::npos);
}

}  // namespace
}  // namespace areal::sim
