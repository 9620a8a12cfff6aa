// Opens and closes the recording of a run, in the recorder's own words.
#pragma once
#include <memory>
#include <string>

#include "replay/record/recorder.h"
#include "sim/cli/loaded.h"

namespace areal::cli {

// `overrides` go into the recording; nothing of the machine does.
Result<std::unique_ptr<record::Recorder>> open_recording(const std::string& path, const Loaded& loaded,
                                                         std::uint64_t seed, const Arguments& arguments);
Status close_recording(record::Recorder& recorder, const sim::RunResult& result);
// Writes the violations that were found and leaves the recording truncated: what is missing has no verdict.
Status leave_open(record::Recorder& recorder, const sim::RunResult& result);

// The profile as a recording stores it, and back.
std::string profile_name(sim::Profile profile);
sim::Profile profile_of(const std::string& name);

// The half that a recording stores: "with_defect", "without_defect" or "".
Half half_of(const std::string& name);

std::string program_version();

}  // namespace areal::cli
