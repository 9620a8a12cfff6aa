// What the trace holds about faults: each one that really did something.
#pragma once
#include <array>
#include <string_view>

#include "engine/base/record.h"
#include "engine/config/scenario.h"
#include "engine/port/trace_sink.h"

namespace areal::sim {

// config::FaultKind with the names that scenarios use, in the same order.
enum class FaultName : std::uint8_t {
  kKill,
  kHang,
  kLoseMessage,
  kDelayMessage,
  kDuplicateMessage,
  kPartition,
  kSlowLink,
  kFailCompute,
  kFlipByte,
  kNoMemory
};
constexpr std::array<std::string_view, 10> enum_names(FaultName /*tag*/) {
  return {"kill",      "hang",      "lose_message", "delay_message", "duplicate_message",
          "partition", "slow_link", "fail_compute", "flip_byte",     "no_memory"};
}
static_assert(static_cast<int>(FaultName::kNoMemory) == static_cast<int>(config::FaultKind::kNoMemory));
constexpr FaultName name_of(config::FaultKind kind) { return static_cast<FaultName>(kind); }

// A fault did something to `node`. `fault` counts from 1: first those of the scenario, then those of the profile.
struct FaultApplied {
  std::uint32_t fault = 0;
  FaultName kind = FaultName::kKill;
  NodeId node{};
  NodeId other{};            // The other end of a message or a partition, if it is one node.
  Duration lasts{};          // Of a hang, a partition or a slow link; how late a message is.
  std::uint64_t detail = 0;  // The factor of a slow link, the compute kind that failed.
  AREAL_RECORD(0x0401, "fault_applied", fault, kind, node, other, lasts, detail)
};
// A kill that would have gone beyond the budget, or found nobody alive.
struct FaultSkipped {
  std::uint32_t fault = 0;
  FaultName kind = FaultName::kKill;
  NodeId node{};
  AREAL_RECORD(0x0402, "fault_skipped", fault, kind, node)
};
// From here on nothing new goes wrong, and partitions and slow links are over.
struct Healed {
  std::uint64_t cut = 0;  // Partitions and slow links that ended by it.
  AREAL_RECORD(0x0403, "healed", cut)
};

void add_fault_kinds(KindTable& kinds);

// What the plan has to say, for the trace; the world gives it a number and a cause.
struct FaultNotice {
  NodeId node;
  Record record;
};
// `lamport` stays 0: a fault is nobody's step.
port::TraceEvent fault_event(const FaultNotice& notice, std::uint64_t seq, std::uint64_t cause, Instant at);

}  // namespace areal::sim
