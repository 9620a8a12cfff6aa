// NAME.db.meta.json: what is known about a recording that differs from machine to machine, kept out of the recording.
#pragma once
#include <span>
#include <string>
#include <utility>

#include "engine/base/result.h"

namespace areal::record {

// Writes `values` (wall time, paths: whatever the caller knows) and the versions of the
// libraries that made the file, as one JSON object of strings, beside the recording at `path`.
Status write_meta(const std::string& path, std::span<const std::pair<std::string, std::string>> values);

}  // namespace areal::record
