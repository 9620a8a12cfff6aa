// Defects in how engines are served from: what goes on after a failure, what ends, and what is written down.
#pragma once
#include <vector>

#include "engine/config/scenario.h"

namespace areal::sim {

// The controller labels an answer with the version that was published last when the answer came.
std::vector<config::RuleSpec> reread_version_on_record();
// An engine whose apply failed is continued as if its old weights were whole.
std::vector<config::RuleSpec> resume_in_finally();
// Telling an engine the published version also ends everything that it works on.
std::vector<config::RuleSpec> version_bump_aborts();

}  // namespace areal::sim
