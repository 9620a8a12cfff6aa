// Scenario files of the repository, and how tests run them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/scenario_yaml.h"
#include "sim/explore/defect_policies.h"
#include "sim/explore/run.h"

namespace areal::test {

inline std::string scenario_folder() { return AREAL_SOURCE_DIR "/scenarios"; }

inline std::vector<std::string> yaml_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::ranges::stable_sort(files);
  return files;
}

// Of a parameter that is a file: a name that test programs can print.
inline std::string stem_of(const testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}

inline config::Scenario read(const std::string& file) {
  auto read = config::read_scenario_file(file);
  EXPECT_TRUE(read.scenario) << config::refusal_text(file, read.problems);
  return read.scenario.value_or(config::Scenario{});
}

// Settings of a run of `scenario` with `defect` built in, or none if it is empty.
inline sim::RunSettings settings_of(const config::Scenario& scenario, const std::string& defect) {
  sim::DefectParts parts;
  if (!defect.empty()) {
    auto found = sim::parts_of_defect(defect);
    EXPECT_TRUE(found) << defect;
    if (found) parts = *found;
  }
  auto room = sim::build_room(scenario, parts.policies);
  EXPECT_TRUE(room) << (room ? "" : room.error().detail);
  sim::RunSettings settings;
  if (room) settings.room = *room;
  settings.seed = 1;
  settings.defect_rules = parts.rules;
  return settings;
}

}  // namespace areal::test
