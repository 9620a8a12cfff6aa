// Reports for programs: one JSON object for one run, or for a range of seeds.
//
// Keys of a run: version, scenario, half, seed, verdict, exit_code, why, digest, events, virtual_ns, published, end,
// violations[{invariant, level, node, version, step, seq, at_ns, message}], refusals[], faults[{number, kind, active,
// scheduled, applied, skipped}], measures[{name, value}], blind[]. `version` is that of this form: keys are only ever
// added under one version. Seeds and digests are strings, because they do not fit into the numbers of every reader.
#pragma once
#include <string>

#include "engine/base/result.h"
#include "sim/cli/run_output.h"
#include "sim/cli/seeds_report.h"

namespace areal::cli {

// Path "-" is standard output. A failure is said on stderr and gives false.
bool write_json(const std::string& path, const RunOutput& run);

// Keys of a range: version, scenario, half, profile, first_seed, last_seed, verdict, exit_code, counts{}, events,
// wall_seconds, checked_twice, faults[{number, kind, node, active_seeds, applied_seeds,
// skipped_seeds}], reproduce, and
// runs[] with the seeds that did not hold (the keys of a run, of which violations has the first one).
bool write_json(const std::string& path, const SeedsReport& report);

}  // namespace areal::cli
