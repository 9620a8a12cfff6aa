// Opens and closes the recording of a run in the recorder's own words, the same whichever program runs it.
#pragma once
#include <memory>
#include <string>

#include "replay/record/recorder.h"
#include "sim/explore/run.h"

namespace areal::sim {

// What of a run goes into its recording besides its trace; nothing of the machine does.
struct RecordedRun {
  const Room& room;
  std::uint64_t seed = 0;
  std::string half;     // "with_defect", "without_defect", or empty.
  std::string profile;  // "calm" or "hostile".
};

// Errors: kInvalid if `path` holds something else than a recording, kIo if it cannot be written.
Result<std::unique_ptr<record::Recorder>> open_recording(const std::string& path, const RecordedRun& run);
Status close_recording(record::Recorder& recorder, const RunResult& result);
// Writes the violations that were found and leaves the recording truncated: what is missing has no verdict.
Status leave_open(record::Recorder& recorder, const RunResult& result);

std::string program_version();

}  // namespace areal::sim
