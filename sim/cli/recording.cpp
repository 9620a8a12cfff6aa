#include "sim/cli/recording.h"

namespace areal::cli {

std::string profile_name(sim::Profile profile) { return profile == sim::Profile::kHostile ? "hostile" : "calm"; }
sim::Profile profile_of(const std::string& name) {
  return name == "hostile" ? sim::Profile::kHostile : sim::Profile::kCalm;
}

Half half_of(const std::string& name) {
  if (name == "with_defect") return Half::kWithDefect;
  return name == "without_defect" ? Half::kWithoutDefect : Half::kNone;
}

}  // namespace areal::cli
