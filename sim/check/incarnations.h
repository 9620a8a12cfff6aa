// Notices that a process began again, so that a judge forgets what the one before had open.
#pragma once
#include <optional>
#include <vector>

#include "engine/port/notes.h"
#include "sim/check/judge.h"

namespace areal::sim {

class Incarnations {
 public:
  // Kinds that tell of a new or dead process; a judge that uses renewed() lists them in interest().
  static constexpr KindId kStarted = port::Started::kKind;
  static constexpr KindId kChanged = port::ProcessChanged::kKind;

  // The node whose open state `event` ends: it runs in a higher incarnation than seen before, or is confirmed dead.
  // Nothing otherwise. A first start ends nothing.
  std::optional<NodeId> renewed(const port::TraceEvent& event) {
    if (subject(event).kind == kChanged) {
      const auto changed = from_record<port::ProcessChanged>(subject(event));
      if (!changed.alive && changed.incarnation >= of(changed.node)) return changed.node;
      return note(changed.node, changed.incarnation);
    }
    return note(event.node, event.incarnation);
  }
  [[nodiscard]] Incarnation of(NodeId node) const { return node.value < last_.size() ? last_[node.value] : 0; }

 private:
  std::optional<NodeId> note(NodeId node, Incarnation incarnation) {
    if (node.value >= kMaxNodes) return std::nullopt;
    if (node.value >= last_.size()) last_.resize(node.value + 1);
    Incarnation& last = last_[node.value];
    if (incarnation <= last) return std::nullopt;
    const bool first = last == 0;
    last = incarnation;
    return first ? std::nullopt : std::optional(node);
  }

  static constexpr std::uint64_t kMaxNodes = 1 << 20;
  std::vector<Incarnation> last_;  // By node id; 0: never seen.
};

}  // namespace areal::sim
