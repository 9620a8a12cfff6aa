// Opens a recording for a subcommand, and says in one sentence why that cannot be done.
#pragma once
#include <memory>
#include <string>

#include "replay/record/run_reader.h"

namespace areal::cli {

// Exit code where the verdict is missing because the recording ends early.
inline constexpr int kTruncated = 2;

// Null after a failure, which is said on stderr; `code` is then the exit code: 65 damaged, 64 not there or newer than
// this program. An earlier 65 in `code` stays.
std::unique_ptr<record::RunReader> open_recording_file(const std::string& path, int* code);

}  // namespace areal::cli
