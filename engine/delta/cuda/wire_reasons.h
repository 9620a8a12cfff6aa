// Why a coded delta was refused on a device, by number; blocks report the least (block, reason).
#pragma once
#include <cstdint>

namespace areal::delta::cuda {

enum class WireReason : std::uint8_t {
  kOffsets,
  kIndices,
  kRoom,
  kTooLong,
  kHeader,
  kLength,
  kTensors,
  kHeaderCheck,
  kContent,
  kNoBase,
  kNarrow,
  kRow,
  kBlockCheck,
  kCodes,
  kNumbers,
  kBehindEnd,
};

inline constexpr const char* kWireReasons[] = {
    "offsets of the tensors descend or are beyond the lists",
    "indices are outside or out of order",
    "there is too little room",
    "2^32 units of coded blocks and more: send parts",
    "no header of version 1, or values of another width",
    "another length than the header says",
    "other tensors than the receiver's, or changes that do not fit into them",
    "header and rows do not fit their check",
    "the new values are not those that were sent: the receiver holds another base",
    "steps, and a tensor has no base",
    "a tensor of more than 2^31 elements, and indices of 32 bits",
    "begins or ends where none can",
    "does not fit its check",
    "begins with codes that do not exist, or has another length than they take",
    "has other numbers than changes, or too large ones",
    "has an index behind what comes after it",
};

// A report that is about no block sorts behind all that are.
inline constexpr std::uint64_t kNoBlock = (1ULL << 55) - 1;
constexpr std::uint64_t wire_report(std::uint64_t block, WireReason reason) {
  return (block << 8) | static_cast<std::uint64_t>(reason);
}

}  // namespace areal::delta::cuda
