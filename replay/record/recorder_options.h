// How a recorder works.
#pragma once
#include <cstdint>

namespace areal::record {

enum class Writing : std::uint8_t {
  kAuto,        // In the background if this process may use more than one core.
  kInline,      // Whoever reports a line writes it.
  kBackground,  // A thread of the recorder's own writes.
};

struct RecorderOptions {
  // Part of what makes files equal: two recordings are compared byte for byte only if these are.
  std::uint64_t block_events = 4096;
  std::uint32_t page_size = 16384;
  // These do not show in the file.
  std::uint64_t blocks_per_commit = 64;  // A block that is ready is also committed a second after the last commit.
  Writing writing = Writing::kAuto;
  // What the thread may be behind, in batches of about 2,000 lines (256 KiB). Whoever reports waits when it is more.
  // Deep, because the thread stands still while the system writes: 65,536 events were measured to be too few.
  std::uint64_t batches_behind = 256;
};

}  // namespace areal::record
