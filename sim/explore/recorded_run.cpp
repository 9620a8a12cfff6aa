#include "sim/explore/recorded_run.h"

#include "engine/config/scenario_yaml.h"

namespace areal::sim {
namespace {

void add_violations(record::Recorder& recorder, const RunResult& result) {
  for (const Violation& violation : result.violations.all()) {
    recorder.add_violation({std::string(info_of(violation.invariant).name),
                            violation.level == InvariantClass::kSafety ? "safety" : "liveness", violation.seq,
                            violation.node, violation.message});
  }
}

}  // namespace

std::string program_version() { return "areal-sim 0.1.0"; }

Result<std::unique_ptr<record::Recorder>> open_recording(const std::string& path, const RecordedRun& run) {
  record::RunInfo info;
  info.scenario_name = run.room.scenario.name;
  info.scenario_text = config::resolved_yaml(run.room.scenario);
  info.half = run.half;
  info.program = program_version();
  info.seed = run.seed;
  info.overrides.emplace_back("profile", run.profile);
  std::vector<record::NodeRow> nodes;
  for (const RoomNode& node : run.room.nodes) {
    nodes.push_back(
        {node.id, node.name, std::string(areal::to_text(node.role)), node.host, node::slot_names(run.room, node)});
  }
  return record::Recorder::open(path, info, nodes, run.room.kinds);
}

Status close_recording(record::Recorder& recorder, const RunResult& result) {
  record::RunEnd end;
  end.verdict = std::string(areal::to_text(result.verdict));
  end.counts = {{"events", result.events},
                {"published", result.published},
                {"virtual_ns", static_cast<std::uint64_t>(result.ended_at.ns)}};
  add_violations(recorder, result);
  return recorder.finish(end);
}

Status leave_open(record::Recorder& recorder, const RunResult& result) {
  add_violations(recorder, result);
  if (recorder.failed()) return Error{Errc::kIo, "it could not be written to its end"};
  return Unit{};
}

}  // namespace areal::sim
