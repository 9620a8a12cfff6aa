// Simulated runs of the repository's scenarios, heard by sinks, for tests of what is made of recordings.
#pragma once
#include "engine/config/scenario_yaml.h"
#include "replay/record/recorder.h"
#include "sim/explore/listeners.h"

namespace areal::testing {

class SimulatedRun {
 public:
  explicit SimulatedRun(const std::string& name) : settings_(settings_of_file(name)) {}

  // Runs it once.
  sim::RunResult run(port::TraceSink& sink) const {
    sim::Listeners forward({&sink});
    return *sim::run_once(settings_, &forward);
  }
  [[nodiscard]] const sim::Room& room() const { return *settings_.room; }
  [[nodiscard]] record::RunInfo info() const {
    return {.scenario_name = room().scenario.name,
            .scenario_text = config::resolved_yaml(room().scenario),
            .half = "",
            .program = "areal-sim test",
            .seed = settings_.seed,
            .overrides = {}};
  }
  [[nodiscard]] std::vector<record::NodeRow> nodes() const {
    std::vector<record::NodeRow> rows;
    for (const sim::RoomNode& node : room().nodes) {
      rows.push_back({node.id, node.name, std::string(to_text(node.role)), node.host, slot_names(room(), node)});
    }
    return rows;
  }
  [[nodiscard]] std::unique_ptr<record::Recorder> open(const std::string& path) const {
    auto recorder = record::Recorder::open(path, info(), nodes(), room().kinds);
    AREAL_CHECK(recorder.has_value());
    return std::move(*recorder);
  }

 private:
  static sim::RunSettings settings_of_file(const std::string& name) {
    const auto read = config::read_scenario_file(std::string(AREAL_SOURCE_DIR) + "/scenarios/" + name);
    AREAL_CHECK(read.scenario.has_value());
    const auto room = sim::build_room(*read.scenario, {});
    AREAL_CHECK(room.has_value());
    sim::RunSettings settings;
    settings.room = *room;
    settings.seed = 1;
    return settings;
  }

  sim::RunSettings settings_;
};

}  // namespace areal::testing
