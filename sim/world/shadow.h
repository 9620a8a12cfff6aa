// The one white-box judge: compares the exact bytes of every receiver with those of its senders after each update.
//
// "Acknowledged" must imply equal bytes (INV-DELTA-EXACT), and what a sender has on record of its receivers must be what
// they hold (INV-DELTA-WATERMARK). It looks into the world's memory, which no recording has; everything else is judged
// from the trace alone.
#pragma once
#include <optional>
#include <string>

#include "sim/world/world.h"

namespace areal::sim {

struct ShadowDifference {
  NodeId node{};           // Whose bytes, or whose record, are wrong.
  bool of_record = false;  // The sender's record differs; else the receiver's bytes.
  std::string what;
};

// To be asked right after an update ended well. Only the first difference is told; nothing if all is equal.
std::optional<ShadowDifference> shadow_difference(const World& world);

}  // namespace areal::sim
