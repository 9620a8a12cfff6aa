// The wire coding of deltas on a device: the same bytes as engine/delta/wire makes on CPUs, and back.
//
// Lists are as the detector writes them: tensor t has entries offsets[t] .. offsets[t + 1] - 1, indices count from the
// start of their tensor and ascend. How many there are stands in device memory, so nothing waits for the host: a launch
// is sized by how many there may be. Calls that share a workspace must be in one stream's order. All pointers are
// device pointers with their element's alignment. Functions may be called from any host thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/result.h"
#include "engine/delta/cuda/stream.h"
#include "engine/delta/wire/format.h"

namespace areal::delta::cuda {

// A tensor of the sender's receivers, or of the receiver.
struct WireTensor {
  const std::uint16_t* base = nullptr;  // All bf16 values as the receiver holds them, for steps; otherwise null.
  std::uint64_t elements = 0;           // At most 2^62.
};

// What a launch found out. `worst` is kWireGood, or the first block that is wrong, shifted by 8, and why.
struct WireOutcome {
  std::uint64_t worst = 0;
  std::uint64_t units = 0;    // Of the message, also if it had no room.
  std::uint64_t changes = 0;  // Coded or decoded; of a message that was refused, as far as it says.
  std::uint64_t blocks = 0;
};
inline constexpr std::uint64_t kWireGood = ~0ULL;
// The host's reading of it: an error that says what is wrong and where, or none.
Status wire_status(const WireOutcome& outcome);

struct WireEncodeInput {
  const std::int32_t* indices32 = nullptr;  // One of the two.
  const std::int64_t* indices64 = nullptr;
  const std::uint16_t* values16 = nullptr;  // One of the two; of 4 bytes only without steps.
  const std::uint32_t* values32 = nullptr;
  const std::uint64_t* offsets = nullptr;  // tensors + 1.
  const WireTensor* tensors = nullptr;
  std::uint32_t count = 0;  // Tensors.
  std::uint64_t most = 0;   // Entries that the lists have room for.
  wire::Form form = wire::Form::kPlain;
};

struct WireRoom {
  std::uint64_t* units = nullptr;  // The message, of 8 bytes each.
  std::uint64_t capacity = 0;      // Units.
};

// Bytes of device memory that a launch works in.
std::size_t wire_encode_workspace(std::uint32_t tensors, std::uint64_t most);
std::size_t wire_decode_workspace(std::uint32_t tensors);
// Units that are always enough for so many changes; `largest`: elements of the largest tensor.
std::uint64_t wire_most_units(std::uint32_t tensors, std::uint64_t most, std::uint64_t largest,
                              std::uint32_t value_bytes);

// The message of all changes, to `room`; `outcome` in device memory. Refuses missing or doubled lists here; the outcome
// refuses offsets beyond `most` or descending, indices that do not ascend or are outside, a message that has no room or
// of 2^32 units of blocks and more.
Status wire_encode(const WireEncodeInput& input, const WireRoom& room, void* workspace, WireOutcome* outcome,
                   Stream stream);

struct WireDecodeOutput {
  std::int32_t* indices32 = nullptr;  // One of the two; 32 bits only if all tensors have at most 2^31 elements.
  std::int64_t* indices64 = nullptr;
  std::uint16_t* values16 = nullptr;  // One of the two.
  std::uint32_t* values32 = nullptr;
  std::uint64_t* offsets = nullptr;  // tensors + 1.
  std::uint64_t most = 0;            // Entries that the lists have room for.
};

// Indices and values of a message of `units` units. Whatever the message is, nothing outside is read or written; what
// was written is worth something only if the outcome is good. Refuses missing or doubled lists here; the outcome
// refuses what Message::open() and decode_blocks() refuse on CPUs, more changes than room, and steps without a base.
Status wire_decode(const std::uint64_t* message, std::uint64_t units, const WireTensor* tensors, std::uint32_t count,
                   const WireDecodeOutput& output, void* workspace, WireOutcome* outcome, Stream stream);

}  // namespace areal::delta::cuda
