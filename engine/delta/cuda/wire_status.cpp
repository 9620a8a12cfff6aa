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
  text.append(reason < std::size(kWireReasons) ? kWireReasons[reason] : "refused");
  return Error{Errc::kCorrupt, std::move(text)};
}

}  // namespace areal::delta::cuda
