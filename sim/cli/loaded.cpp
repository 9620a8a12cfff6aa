#include "sim/cli/loaded.h"

#include <fmt/core.h>

#include "engine/base/text.h"
#include "engine/config/scenario_yaml.h"
#include "sim/check/invariants.h"
#include "sim/explore/defect_policies.h"

namespace areal::cli {
namespace {

// Of a name that no invariant has; empty of others.
std::string unknown_invariant(std::string_view path, const config::ExpectSettings& expect) {
  if (expect.invariant.empty() || sim::find_invariant(expect.invariant)) return "";
  std::vector<std::string_view> names;
  for (const sim::InvariantInfo& info : sim::all_invariants()) names.push_back(info.name);
  return fmt::format("{}.invariant: no invariant is called '{}'{}; docs/invariants.md lists them", path,
                     expect.invariant, did_you_mean(expect.invariant, names));
}

std::optional<Loaded> build(const config::ReadScenario& read, const std::string& name, Half half) {
  if (!read.scenario) {
    fmt::print(stderr, "{}\n", config::refusal_text(name, read.problems));
    return std::nullopt;
  }
  const config::Scenario& scenario = *read.scenario;
  const auto refuse = [&](const std::string& text) -> std::optional<Loaded> {
    fmt::print(stderr, "{} has 1 problem; nothing was started.\n  {}\n", name, text);
    return std::nullopt;
  };
  Loaded loaded;
  loaded.expect = scenario.expect;
  std::string unknown = unknown_invariant("expect", scenario.expect);
  if (unknown.empty() && scenario.expect_defect) unknown = unknown_invariant("with_defect", *scenario.expect_defect);
  if (!unknown.empty()) return refuse(unknown);
  sim::RoomPolicies policies;
  if (scenario.defect.empty()) {
    if (half != Half::kNone) return refuse("--half needs a scenario that names a defect");
  } else {
    auto parts = sim::parts_of_defect(scenario.defect);
    if (!parts) return refuse(parts.error().detail);
    loaded.half = half == Half::kWithoutDefect ? "without_defect" : "with_defect";
    if (half != Half::kWithoutDefect) {
      loaded.defect_rules = std::move(parts->rules);
      policies = std::move(parts->policies);
      if (scenario.expect_defect) loaded.expect = *scenario.expect_defect;
    }
  }
  auto room = sim::build_room(scenario, policies);
  if (!room) return refuse(room.error().detail);
  loaded.room = std::move(*room);
  return loaded;
}

}  // namespace

std::optional<Loaded> load_scenario(const std::string& file, const std::vector<std::string>& sets, Half half) {
  return build(config::read_scenario_file(file, sets), file, half);
}

std::optional<Loaded> load_text(const std::string& text, const std::string& name, Half half) {
  return build(config::read_scenario(text, name), name, half);
}

sim::RunSettings settings_of(const Loaded& loaded, std::uint64_t seed, sim::Profile profile) {
  sim::RunSettings settings;
  settings.room = loaded.room;
  settings.seed = seed;
  settings.profile = profile;
  settings.defect_rules = loaded.defect_rules;
  settings.stop_on_violation = loaded.expect.verdict == config::Verdict::kHeld;
  return settings;
}

}  // namespace areal::cli
