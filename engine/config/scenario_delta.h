// What a scenario asks of updates that cannot be: delta updates beside something they do not work with, and ways of
// updating that are not simulated.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/scenario.h"
#include "engine/config/scenario_cluster.h"

namespace areal::config {

struct Conflict {
  std::string path;  // "scenario.train.lora".
  std::string text;
};

// Every conflict of the scenario: the nine conditions of delta_gate.h, one optimizer step an update, and a power of two
// of ranks (INV-DELTA-POW2), if delta updates are on. `shape` is missing if the layouts are wrong: then ranks are not
// counted.
std::vector<Conflict> update_conflicts(const Scenario& scenario, const std::optional<ClusterShape>& shape);

}  // namespace areal::config
