#include "sim/explore/catalogue.h"

#include <algorithm>
#include <filesystem>

#include "engine/config/scenario_yaml.h"
#include "sim/explore/defect_policies.h"

namespace areal::sim {
namespace {

namespace fs = std::filesystem;

// The violation that an expectation names; what was refused if it names none.
void describe(const config::ExpectSettings& expect, const RunResult& result, const JudgeSetup& setup,
              CatalogueReport& report) {
  for (const Violation& violation : result.violations.all()) {
    if (!is_named(expect, violation, setup)) continue;
    report.with = info_of(violation.invariant).name;
    if (violation.node != NodeId{}) report.with += " at " + setup.name_of(violation.node);
    if (violation.version) report.with += ", version " + std::to_string(*violation.version);
    report.message = violation.message;
    return;
  }
  report.with = expect.refused.empty() ? "nothing" : "refused as " + expect.refused;
  if (result.end) report.with += ", ended " + std::string(areal::to_text(result.end->end));
}

// A half of an entry, ready to run.
struct HalfRun {
  RunSettings settings;
  config::ExpectSettings expect;
};

Result<HalfRun> prepare(const config::Scenario& scenario, bool with_defect, std::uint64_t seed) {
  DefectParts parts;
  if (with_defect) {
    auto found = parts_of_defect(scenario.defect);
    if (!found) return found.error();
    parts = std::move(*found);
  }
  auto room = build_room(scenario, parts.policies);
  if (!room) return room.error();
  HalfRun half;
  half.settings.room = std::move(*room);
  half.settings.seed = seed;
  half.settings.defect_rules = std::move(parts.rules);
  half.expect = with_defect ? *scenario.expect_defect : scenario.expect;
  return half;
}

// What a defect breaks first need not be what its report is about: then the run goes on.
Result<RunResult> run_with(HalfRun& half) {
  const JudgeSetup& setup = *half.settings.room->setup;
  auto result = run_once(half.settings, nullptr);
  if (!result || result->violations.empty() || unmet_expectation(half.expect, *result, setup).empty()) return result;
  half.settings.stop_on_violation = false;
  return run_once(half.settings, nullptr);
}

Result<Unit> try_with(HalfRun half, CatalogueReport& report) {
  const JudgeSetup& setup = *half.settings.room->setup;
  const auto& points = half.settings.room->scenario.interleave;
  if (!points) {
    auto result = run_with(half);
    if (!result) return result.error();
    report.with = unmet_expectation(half.expect, *result, setup);
    report.found = report.with.empty();
    if (report.found) describe(half.expect, *result, setup, report);
    return Unit{};
  }
  const auto is_witness = [&](const RunResult& run) { return unmet_expectation(half.expect, run, setup).empty(); };
  auto all = try_orders(half.settings, is_witness);
  if (!all) return all.error();
  report.found = all->witnesses > 0;
  report.with = "no order shows it";
  if (report.found) describe(half.expect, all->witness_run, setup, report);
  report.with += " (" + std::to_string(all->witnesses) + " of " + std::to_string(all->tried) + " orders, " +
                 std::to_string(all->kept) + " of them possible)";
  report.witness = to_text(*points, all->witness);
  return Unit{};
}

Result<Unit> try_without(const HalfRun& half, CatalogueReport& report) {
  const JudgeSetup& setup = *half.settings.room->setup;
  const auto& points = half.settings.room->scenario.interleave;
  if (!points) {
    auto result = run_once(half.settings, nullptr);
    if (!result) return result.error();
    report.without = unmet_expectation(half.expect, *result, setup);
    report.clean = report.without.empty();
    return Unit{};
  }
  const auto goes_wrong = [&](const RunResult& run) { return !unmet_expectation(half.expect, run, setup).empty(); };
  auto all = try_orders(half.settings, goes_wrong);
  if (!all) return all.error();
  report.clean = all->witnesses == 0;
  if (report.clean) {
    report.without = std::to_string(all->tried) + " orders, " + std::to_string(all->kept) + " of them possible";
  } else {
    report.without =
        unmet_expectation(half.expect, all->witness_run, setup) + " in the order " + to_text(*points, all->witness);
  }
  return Unit{};
}

}  // namespace

std::vector<std::string> catalogue_files(const std::string& directory) {
  std::vector<std::string> files;
  for (const char* part : {"reports", "gaps"}) {
    std::error_code failed;
    fs::directory_iterator place(fs::path(directory) / part, failed);
    std::vector<std::string> found;
    for (; !failed && place != fs::directory_iterator(); place.increment(failed)) {
      if (place->path().extension() == ".yaml") found.push_back(place->path().string());
    }
    std::ranges::stable_sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

std::string find_scenarios(const std::string& program) {
  if (!catalogue_files("scenarios").empty()) return "scenarios";
  std::error_code failed;
  fs::path folder = fs::weakly_canonical(program, failed).parent_path();
  while (!failed && !folder.empty()) {
    if (std::string place = (folder / "scenarios").string(); !catalogue_files(place).empty()) return place;
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return {};
}

Result<CatalogueReport> run_catalogue_entry(const std::string& file, std::uint64_t seed) {
  const auto read = config::read_scenario_file(file);
  if (!read.scenario) return Error{Errc::kInvalid, config::refusal_text(file, read.problems)};
  const config::Scenario& scenario = *read.scenario;
  if (scenario.defect.empty()) return Error{Errc::kInvalid, file + " names no defect"};
  CatalogueReport report;
  report.file = file;
  report.name = scenario.name;
  report.seat = scenario.defect_seat;
  auto with = prepare(scenario, true, seed);
  if (!with) return with.error();
  auto without = prepare(scenario, false, seed);
  if (!without) return without.error();
  report.source = std::string(find_defect(scenario.defect)->source);
  AREAL_TRY(try_with(std::move(*with), report));
  AREAL_TRY(try_without(*without, report));
  return report;
}

}  // namespace areal::sim
