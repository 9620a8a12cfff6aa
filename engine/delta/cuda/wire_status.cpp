#include <algorithm>
#include <string>

#include "engine/delta/cuda/wire.h"
#include "engine/delta/cuda/wire_reasons.h"

namespace areal::delta::cuda {

Status wire_status(const WireOutcome& outcome) {
  if (outcome.worst == kWireGood) return Unit{};
  const std::uint64_t reason = outcome.worst & 0xFFU;
  const std::uint64_t block = outcome.worst >> 8;
  std::string text("coded delta: ");
  if (block != kNoBlock) text.append("block ").append(std::to_string(block)).append(": ");
  const WireReasonWords words = kWireReasons[std::min<std::uint64_t>(reason, std::size(kWireReasons) - 1)];
  return Error{words.code, text.append(words.text)};
}

}  // namespace areal::delta::cuda
