// Reads scenario files: YAML with one top key `scenario:`, turned into a Scenario, or into all that is wrong with it.
//
// Keys and their meaning are in the table of scenario_keys.h and in docs/scenarios.md. No exception leaves. The names
// of kinds, fields and defects are checked later by those who know them, with the lines that a Scenario keeps. Pure
// functions, safe from any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/config/scenario.h"
#include "engine/config/yaml_document.h"

namespace areal::config {

struct ReadScenario {
  std::optional<Scenario> scenario;  // Set if and only if there is no problem.
  std::vector<Problem> problems;     // In the order of the file.
};

// A change of one value before the scenario is checked: "work.updates=20", "faults[0].at=45s", "links.latency=1ms". The
// path is relative to `scenario:`; writing that key first is allowed.
using Override = std::string;

// `file_name` becomes Scenario::file.
ReadScenario read_scenario(const std::string& file_text, const std::string& file_name,
                           const std::vector<Override>& sets = {});

// The same from a file; that it cannot be read is a problem too.
ReadScenario read_scenario_file(const std::string& file_name, const std::vector<Override>& sets = {});

// What a user sees: "mine.yaml has 3 problems; nothing was started." and a line for each.
std::string refusal_text(const std::string& file_name, const std::vector<Problem>& problems);

// The scenario as YAML with every default filled in and keys in the order of the table. Reading it gives an equal
// scenario, but for the lines.
std::string resolved_yaml(const Scenario& scenario);

}  // namespace areal::config
