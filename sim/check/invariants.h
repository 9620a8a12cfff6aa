// The registry of invariants: what must hold, who judges it, what a breach means, and by which names it is known.
//
// One table. docs/invariants.md is rendered from it (a test compares them; AREAL_WRITE_DOCS=1 rewrites the file). The
// first rows are in the order of InvariantId and have a judge; the rows after them are not judged yet and say so.
// Constant data, safe from any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace areal::sim {

// Invariants with a judge. The value is the row of the table.
enum class InvariantId : std::uint8_t {
  kInv1,
  kInv2,
  kInv3,
  kInv6,
  kInv7,
  kInv8,
  kInv9,
  kInv10,
  kInv11,
  kInv14,
  kInv19,
  kStaleHead,
  kStaleBound,
  kGlooOrder,
  kGlooFence,
  kGlooCtrl,
  kXferDtype,
  kPlanCover,
  kPlanSym,
  kPlanRange,
  kPairUnique,
  kPairReserveFirst,
  kPairVersion,
  kPairSerial,
  kGwOnce,
  kPortReleaseAfterExit,
  kLoopOrder,
  kLoopMono,
  kLoopPaused,
  kRtReceipt,
  kRtLeak,
  kTaskTerminal,
  kDispConserve,
  kInv4,
  kInv5,
  kDeltaCommit,
  kDeltaUnanimous,
  kDeltaDtypeRounds,
  kDeltaNnzSlots,
  kDeltaSuperset,
  kDeltaCollCount,
  kDeltaQuietYield,
  kDeltaGrads,
  kDeltaFailFull,
  kAnchorCause,
  kInv17,
  kRecAtomic,
  kRecVersion,
  kRecEpoch,
  kStaleRecover,
  kDeltaExact,
  kDeltaWatermark,
  kJudged,  // How many there are.
};

enum class InvariantClass : std::uint8_t {
  kSafety,    // Something wrong has happened: exit 1.
  kLiveness,  // Something right has not happened in time: exit 3.
  kReported,  // A number that is printed; safety only where a scenario enforces it.
};

struct InvariantInfo {
  std::string_view name;  // "INV-1".
  std::string_view sentence;
  std::string_view judge;  // Empty: not judged yet.
  InvariantClass level = InvariantClass::kSafety;
  std::string_view aliases;  // Other names, separated by one blank.
};

constexpr int exit_code(InvariantClass level) {
  switch (level) {
    case InvariantClass::kSafety:
      return 1;
    case InvariantClass::kLiveness:
      return 3;
    case InvariantClass::kReported:
      return 0;
  }
  return 1;
}

std::span<const InvariantInfo> all_invariants();
const InvariantInfo& info_of(InvariantId id);
// By name or alias, in any case of letters; nothing if nobody is called so.
std::optional<InvariantId> find_invariant(std::string_view name);
// The text of docs/invariants.md.
std::string render_invariants();

}  // namespace areal::sim
