// A checkpoint in a file: words under a head with version, length and digest; a damaged file is refused with a reason.
//
// Little-endian words: format, version, count, digest high, digest low, then `count` words. The digest is of all other
// words. Saving replaces the file as a whole; who dies while saving leaves the checkpoint before it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::host {

struct Checkpoint {
  std::uint64_t version = 0;  // Of the weights.
  std::vector<std::uint64_t> words;
  bool operator==(const Checkpoint&) const = default;
};

// Both block until the disk has done its part. Thread-safe for different files.
//
// kIo: the file cannot be written, or somebody else is writing it now.
Status save_checkpoint(const std::filesystem::path& path, std::uint64_t version, std::span<const std::uint64_t> words);
// kIo: no such file, or it cannot be read. kCorrupt: it is no checkpoint or not as it was saved. kUnsupported: another
// format.
Result<Checkpoint> load_checkpoint(const std::filesystem::path& path);

}  // namespace areal::host
