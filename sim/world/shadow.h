// The one white-box judge: compares the exact bytes of every receiver with those of its senders after each update.
//
// "Acknowledged" must imply equal bytes (INV-DELTA-EXACT), and what a sender has on record of its receivers must be
// what they hold (INV-DELTA-WATERMARK). It looks into the world's memory, which no recording has; everything else is
// judged from the trace alone. Pure functions and values; not thread-safe.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/incarnations.h"
#include "sim/world/world.h"

namespace areal::sim {

struct ShadowDifference {
  NodeId node{};           // Whose bytes, or whose record, are wrong.
  bool of_record = false;  // The sender's record differs; else the receiver's bytes.
  std::string what;
};

// Whom the comparison leaves out, gathered from the trace since the present attempt began.
class ShadowScope {
 public:
  void on_event(const port::TraceEvent& event);
  // Its process began anew: it holds what it loaded. The update stands all the same.
  [[nodiscard]] bool is_renewed(NodeId node) const { return std::ranges::find(renewed_, node) != renewed_.end(); }
  // It could not record what was acknowledged, and will not send a delta from it.
  [[nodiscard]] bool is_unrecorded(NodeId node) const {
    return std::ranges::find(unrecorded_, node) != unrecorded_.end();
  }

 private:
  Incarnations incarnations_;
  std::vector<NodeId> renewed_;     // Few: of deaths since then.
  std::vector<NodeId> unrecorded_;  // Of trainers.
};

// To be asked right after an update ended well. Only the first difference is told; nothing if all is equal.
std::optional<ShadowDifference> shadow_difference(const World& world, const ShadowScope& scope);

}  // namespace areal::sim
