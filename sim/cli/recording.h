// What the command line says of a run, in the words that recordings store, and back.
#pragma once
#include <string>

#include "sim/cli/options.h"
#include "sim/explore/recorded_run.h"

namespace areal::cli {

using sim::close_recording;
using sim::leave_open;
using sim::program_version;

std::string profile_name(sim::Profile profile);
sim::Profile profile_of(const std::string& name);

// The half that a recording stores: "with_defect", "without_defect" or "".
Half half_of(const std::string& name);

}  // namespace areal::cli
