#include "sim/cli/recording.h"

#include "engine/config/scenario_yaml.h"

namespace areal::cli {

std::string program_version() { return "areal-sim 0.1.0"; }

std::string profile_name(sim::Profile profile) { return profile == sim::Profile::kHostile ? "hostile" : "calm"; }
sim::Profile profile_of(const std::string& name) {
  return name == "hostile" ? sim::Profile::kHostile : sim::Profile::kCalm;
}

Half half_of(const std::string& name) {
  if (name == "with_defect") return Half::kWithDefect;
  return name == "without_defect" ? Half::kWithoutDefect : Half::kNone;
}

Result<std::unique_ptr<record::Recorder>> open_recording(const std::string& path, const Loaded& loaded,
                                                         std::uint64_t seed, const Arguments& arguments) {
  const sim::Room& room = *loaded.room;
  record::RunInfo info;
  info.scenario_name = room.scenario.name;
  info.scenario_text = config::resolved_yaml(room.scenario);
  info.half = loaded.half;
  info.program = program_version();
  info.seed = seed;
  info.overrides.emplace_back("profile", profile_name(arguments.profile));
  std::vector<record::NodeRow> nodes;
  for (const sim::RoomNode& node : room.nodes) {
    nodes.push_back({node.id, node.name, std::string(to_text(node.role)), node.host, node::slot_names(room, node)});
  }
  return record::Recorder::open(path, info, nodes, room.kinds);
}

namespace {

void add_violations(record::Recorder& recorder, const sim::RunResult& result) {
  for (const sim::Violation& violation : result.violations.all()) {
    recorder.add_violation({std::string(sim::info_of(violation.invariant).name),
                            violation.level == sim::InvariantClass::kSafety ? "safety" : "liveness", violation.seq,
                            violation.node, violation.message});
  }
}

}  // namespace

Status close_recording(record::Recorder& recorder, const sim::RunResult& result) {
  static constexpr std::array<std::string_view, 4> kVerdicts{"held", "violation", "inconclusive", "liveness"};
  record::RunEnd end;
  end.verdict = std::string(kVerdicts[static_cast<std::size_t>(result.verdict)]);
  end.counts = {{"events", result.events},
                {"published", result.published},
                {"virtual_ns", static_cast<std::uint64_t>(result.ended_at.ns)}};
  add_violations(recorder, result);
  return recorder.finish(end);
}

Status leave_open(record::Recorder& recorder, const sim::RunResult& result) {
  add_violations(recorder, result);
  if (recorder.failed()) return Error{Errc::kIo, "it could not be written to its end"};
  return Unit{};
}

}  // namespace areal::cli
