// Finds the events that a rule or a fault names: by node, kind, fields and count.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/config/scenario.h"
#include "sim/fault/field_ref.h"

namespace areal::sim {

// A value; its only state is how many events have fitted so far.
class EventMatcher {
 public:
  // Errors name the line and what would be right.
  static Result<EventMatcher> compile(const config::EventMatch& match, const KindTable& kinds,
                                      const NodeDirectory& directory);

  // Node, kind and fields fit; a body kind goes before its carrier's.
  [[nodiscard]] bool fits(NodeId node, bool is_input, const Record& record, const Record& body) const;
  // Counts a fitting event; true if it is the one that is wanted: every one, or the n-th.
  bool hit(NodeId node, bool is_input, const Record& record, const Record& body);

  [[nodiscard]] const EventKind& kind() const { return kind_; }
  [[nodiscard]] std::uint32_t seen() const { return seen_; }
  void set_seen(std::uint32_t seen) { seen_ = seen; }

 private:
  struct Accepted {
    FieldSpot spot;
    std::array<std::uint64_t, 2> value{};
  };
  // One field; the entry for the kind that has it is asked.
  using FieldTest = std::vector<Accepted>;

  static Result<FieldTest> compile_field(const config::FieldValue& field, const EventKind& kind, const KindTable& kinds,
                                         const NodeDirectory& directory);
  static bool passes(const FieldTest& test, const Record& record, const Record& body);

  EventKind kind_;
  NodeSet nodes_;
  std::vector<FieldTest> tests_;
  std::uint32_t occurrence_ = 0;
  std::uint32_t seen_ = 0;
};

}  // namespace areal::sim
