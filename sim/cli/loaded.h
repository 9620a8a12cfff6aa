// A scenario file made ready to run: read, checked, its defect found, its room built.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/options.h"
#include "sim/explore/run.h"

namespace areal::cli {

struct Loaded {
  std::shared_ptr<const sim::Room> room;
  std::vector<config::RuleSpec> defect_rules;  // Of the defect that is on in this half.
  std::string half;                            // "with_defect", "without_defect", or empty.
  config::ExpectSettings expect;               // Of this half.
};

// Prints what is wrong and returns nothing if something is. `half` kNone with a defect in the scenario means
// with_defect: a scenario that names a defect is about it.
std::optional<Loaded> load_scenario(const std::string& file, const std::vector<std::string>& sets, Half half);
// The same from the text of a recording.
std::optional<Loaded> load_text(const std::string& text, const std::string& name, Half half);

sim::RunSettings settings_of(const Loaded& loaded, std::uint64_t seed, sim::Profile profile);

}  // namespace areal::cli
