#include "sim/cli/output_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace areal::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormVersion = 1;

Json version_json(const std::optional<Version>& version) { return version ? Json(*version) : Json(nullptr); }

Json violation_json(const sim::Violation& violation, const sim::JudgeSetup& setup) {
  Json out;
  out["invariant"] = sim::info_of(violation.invariant).name;
  out["level"] = violation.level == sim::InvariantClass::kSafety ? "safety" : "liveness";
  out["node"] = violation.node.value == 0 ? Json(nullptr) : Json(setup.name_of(violation.node));
  out["version"] = version_json(violation.version);
  out["step"] = violation.step ? Json(*violation.step) : Json(nullptr);
  out["seq"] = violation.seq;
  out["at_ns"] = violation.at.ns;
  out["message"] = violation.message;
  return out;
}

Json faults_json(const std::vector<sim::FaultCount>& faults) {
  Json out = Json::array();
  for (const sim::FaultCount& fault : faults) {
    out.push_back({{"number", out.size() + 1},
                   {"kind", areal::to_text(fault.kind)},
                   {"active", fault.active},
                   {"scheduled", fault.scheduled},
                   {"applied", fault.applied},
                   {"skipped", fault.skipped}});
  }
  return out;
}

Json run_json(const RunOutput& run) {
  const sim::RunResult& result = run.result;
  Json out;
  out["version"] = kFormVersion;
  out["scenario"] = run.scenario;
  out["half"] = run.half;
  out["seed"] = seed_text(run.seed);
  out["verdict"] = areal::to_text(result.verdict);
  out["exit_code"] = run.exit_code.value_or(sim::exit_code(result.verdict));
  out["why"] = result.why;
  out["digest"] = to_hex(result.digest);
  out["events"] = result.events;
  out["virtual_ns"] = result.ended_at.ns;
  out["published"] = result.published;
  out["end"] = result.end ? Json(areal::to_text(result.end->end)) : Json(nullptr);
  out["violations"] = Json::array();
  for (const sim::Violation& one : result.violations.all())
    out["violations"].push_back(violation_json(one, *run.setup));
  out["refusals"] = result.refusals;
  out["faults"] = faults_json(result.faults);
  out["measures"] = Json::array();
  for (const sim::Measure& one : result.measures) out["measures"].push_back({{"name", one.name}, {"value", one.value}});
  out["blind"] = result.blind;
  return out;
}

// The words of a run's verdict, and two more.
std::string_view end_text(SeedEnd end) {
  static constexpr std::array<std::string_view, kSeedEnds> kWords{
      "not_run", "held", "not_as_expected", "violation", "inconclusive", "liveness", "broken"};
  return kWords[static_cast<std::size_t>(end)];
}

Json seed_json(const SeedsReport& report, std::size_t index) {
  const SeedOutcome& outcome = report.outcomes[index];
  const SeedDetail& detail = report.details[index];
  Json out;
  out["seed"] = seed_text(report.seed_of(index));
  out["verdict"] = end_text(outcome.end);
  out["exit_code"] = exit_code(outcome);
  out["digest"] = to_hex(outcome.digest);
  out["events"] = outcome.events;
  out["virtual_ns"] = outcome.ended_at_ns;
  out["published"] = outcome.published;
  out["checked_twice"] = outcome.repeated;
  out["changed"] = outcome.changed;
  out["violations"] = Json::array();
  if (detail.violations == 0) {
    out["why"] = detail.text.data();
    return out;
  }
  const sim::InvariantInfo& info = sim::info_of(static_cast<sim::InvariantId>(detail.invariant));
  Json first;
  first["invariant"] = info.name;
  first["node"] = detail.node == 0 ? Json(nullptr) : Json(report.node_name(detail.node));
  first["version"] = detail.has_version ? Json(detail.version) : Json(nullptr);
  first["seq"] = detail.seq;
  first["at_ns"] = detail.at_ns;
  first["message"] = detail.text.data();
  out["violations"].push_back(std::move(first));
  out["violation_count"] = detail.violations;
  return out;
}

// That of the seed with the worst exit code.
std::string_view range_verdict(const SeedsReport& report, const SeedCounts& counts) {
  if (report.exit_code == 4) return "not_deterministic";
  for (const SeedEnd end : {SeedEnd::kSafety, SeedEnd::kUnmet, SeedEnd::kBroken, SeedEnd::kLiveness,
                            SeedEnd::kInconclusive, SeedEnd::kHeld}) {
    if (counts.of(end) != 0) return end_text(end);
  }
  return end_text(SeedEnd::kNotRun);
}

Json seeds_json(const SeedsReport& report) {
  const SeedCounts counts = count_seeds(report.outcomes);
  Json out;
  out["version"] = kFormVersion;
  out["scenario"] = report.scenario;
  out["half"] = report.half;
  out["profile"] = report.profile;
  out["first_seed"] = seed_text(report.range.first);
  out["last_seed"] = seed_text(report.range.last);
  out["verdict"] = range_verdict(report, counts);
  out["exit_code"] = report.exit_code;
  out["counts"] = Json::object();
  for (std::size_t end = 0; end < kSeedEnds; ++end) {
    out["counts"][std::string(end_text(static_cast<SeedEnd>(end)))] = counts.of_end[end];
  }
  out["events"] = counts.events;
  out["wall_seconds"] = report.wall_s;
  out["checked_twice"] = counts.repeated;
  out["changed"] = counts.changed;
  out["faults"] = Json::array();
  for (std::size_t fault = 0; fault < std::min(report.faults.size(), kFaultsCounted); ++fault) {
    out["faults"].push_back({{"number", fault + 1},
                             {"kind", areal::to_text(report.faults[fault].kind)},
                             {"node", report.faults[fault].node},
                             {"active_seeds", counts.active[fault]},
                             {"applied_seeds", counts.applied[fault]},
                             {"skipped_seeds", counts.skipped[fault]}});
  }
  out["reproduce"] = report.reproduce;
  out["runs"] = Json::array();
  for (std::size_t index = 0; index < report.outcomes.size(); ++index) {
    if (exit_code(report.outcomes[index]) != 0) out["runs"].push_back(seed_json(report, index));
  }
  return out;
}

// What is no UTF-8 becomes a mark: a report must not fail over the name of a file.
std::string text_of(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace

bool write_json(const std::string& path, const RunOutput& run) { return write_report(path, text_of(run_json(run))); }

bool write_json(const std::string& path, const SeedsReport& report) {
  return write_report(path, text_of(seeds_json(report)));
}

}  // namespace areal::cli
