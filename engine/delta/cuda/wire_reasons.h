// Why a coded delta was refused on a device, by number; blocks report the least (block, reason).
#pragma once
#include <cstdint>
#include <iterator>

#include "engine/base/result.h"

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

struct WireReasonWords {
  Errc code;  // As the CPU's coding has it, where the two can tell the same.
  const char* text;
};
inline constexpr WireReasonWords kWireReasons[] = {
    {Errc::kInvalid, "offsets of the tensors descend or are beyond the lists"},
    {Errc::kInvalid, "indices are outside or out of order"},
    {Errc::kInvalid, "there is too little room"},
    {Errc::kUnsupported, "2^32 units of coded blocks and more: send parts"},
    {Errc::kInvalid, "no header of version 1, or values of another width"},
    {Errc::kTruncated, "another length than the header says"},
    {Errc::kInvalid, "other tensors than the receiver's, or changes that do not fit into them"},
    {Errc::kCorrupt, "header and rows do not fit their check"},
    {Errc::kCorrupt, "the new values are not those that were sent: the receiver holds another base"},
    {Errc::kInvalid, "steps, and a tensor has no base"},
    {Errc::kInvalid, "a tensor of more than 2^31 elements, and indices of 32 bits"},
    {Errc::kCorrupt, "begins or ends where none can"},
    {Errc::kCorrupt, "does not fit its check"},
    {Errc::kCorrupt, "begins with codes that do not exist, or has another length than they take"},
    {Errc::kCorrupt, "has other numbers than changes, or too large ones"},
    {Errc::kCorrupt, "has an index behind what comes after it"},
};
static_assert(std::size(kWireReasons) == static_cast<std::size_t>(WireReason::kBehindEnd) + 1,
              "a line for each reason");

// A report that is about no block sorts behind all that are.
inline constexpr std::uint64_t kNoBlock = (1ULL << 55) - 1;
constexpr std::uint64_t wire_report(std::uint64_t block, WireReason reason) {
  return (block << 8) | static_cast<std::uint64_t>(reason);
}

}  // namespace areal::delta::cuda
