// Entries of the catalogue that are wrong input: scenario files that must be refused, with every message that they
// name.
//
// The last lines of such a file say what is told, in order, one line each: `#! LINE | PATH | WORDS OF THE MESSAGE`.
#pragma once
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/scenario_yaml.h"

namespace areal::sim {

struct RefusedReport {
  std::string file;
  std::string source;  // "X02": where the input was seen.
  std::string name;    // Of the file.
  bool as_named = false;
  std::vector<std::string> told;  // "line 7: PATH MESSAGE"
  std::string lacks;              // What is told otherwise; empty if as_named.
};

// Files NAME.yaml of DIRECTORY/refused, in the order of their names; empty if there are none.
std::vector<std::string> refused_files(const std::string& directory);

// What the file says that must be told. An error: it says nothing, or says it wrongly.
Result<std::vector<config::Problem>> expected_problems(const std::string& file);

// Errors: as of expected_problems.
Result<RefusedReport> check_refused_file(const std::string& file);

}  // namespace areal::sim
