// One fault of a plan, compiled: whom it hits, what sets it off, and which faults a profile adds.
//
// What sets a fault off:
//   at, when        it happens then (`after` later);
//   chance          each time it could happen, from the start, or from `at` or `when` on;
// A fault that waits for an occasion (a message, a compute operation, a payload, a reservation) takes the next one
// after `at` or `when`, or the next `limit` ones; every one for as long as it `lasts`, if that is given and not its own
// amount.
//
// When it could happen: kill and hang, at each input of a target; messages and partitions, at each message; a slow
// link, at each payload; the others, at each operation of their kind.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/fault/event_matcher.h"

namespace areal::sim {

enum class Profile : std::uint8_t {
  kCalm,     // Only what the scenario says.
  kHostile,  // Also late, lost and doubled messages, dead engine ranks and slow links, each on in half of all runs.
};

struct PlannedFault {
  config::FaultSpec spec;
  std::string stream;  // Prefix of its decision streams: "fault.3.kill".
  NodeSet nodes;
  NodeSet others;  // Every node if `spec.other` is empty.
  std::optional<EventMatcher> when;
  KindId body = 0;                           // Of messages that it hits; 0: all.
  std::optional<port::ComputeKind> compute;  // That it fails; none: all.
  bool spreads = false;                      // `spec.lasts` is the most; how much is drawn.

  [[nodiscard]] bool on_trigger() const { return spec.at.has_value() || when.has_value(); }
  [[nodiscard]] bool is(config::FaultKind kind) const { return spec.kind == kind; }
};

// Errors name the line and what would be right.
Result<std::vector<PlannedFault>> compile_faults(std::span<const config::FaultSpec> specs, Profile profile,
                                                 const KindTable& kinds, const NodeDirectory& directory);

}  // namespace areal::sim
