// Where a rule takes a value from: what the scenario says, a field of the matched event, or a probe.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/config/scenario.h"
#include "engine/port/fault_hook.h"
#include "sim/fault/field_ref.h"
#include "sim/fault/probe_store.h"

namespace areal::sim {

// What names in a scenario are looked up in.
struct RuleScope {
  const KindTable& kinds;
  const NodeDirectory& directory;
};

class ValueSource {
 public:
  // Reads "field:NAME", "node.KIND.FIELD" (the latest note of the kind anywhere), "node.self.KIND.FIELD" (the latest at
  // the matched node) or a literal, to be written into a field like `target`.
  static Result<ValueSource> compile(const config::FieldValue& value, const FieldInfo& target, const EventKind& matched,
                                     const RuleScope& scope);
  // A copy of the matched event's field. REQUIRES: it has the type of the target.
  static ValueSource of_field(FieldRef field);
  static ValueSource of_literal(std::uint64_t word);

  // Nothing if the matched event lacks the field, or no such note was seen yet: the target then stays as it is.
  [[nodiscard]] std::optional<std::array<std::uint64_t, 2>> read(const port::Passing& matched,
                                                                 const ProbeStore& probes) const;
  // The kind of note that is asked for; 0 for none.
  [[nodiscard]] KindId probe() const { return probe_; }

 private:
  static Result<ValueSource> compile_field(std::string_view name, const FieldInfo& target, const EventKind& matched,
                                           const RuleScope& scope, int line);
  static Result<ValueSource> compile_probe(std::string_view text, const FieldInfo& target, const RuleScope& scope,
                                           int line);

  std::array<std::uint64_t, 2> literal_{};
  std::optional<FieldRef> field_;
  KindId probe_ = 0;
  std::size_t probe_word_ = 0;
  std::size_t probe_words_ = 1;
  bool of_self_ = false;
};

// Whether values of one field can be written into the other.
bool same_type(const FieldInfo& a, const FieldInfo& b);

struct Assignment {
  FieldRef target;
  ValueSource source;
};

// `value.name` is a field of `target`; the value is read from `matched`.
Result<Assignment> compile_assignment(const config::FieldValue& value, const EventKind& target,
                                      const EventKind& matched, const RuleScope& scope);
void assign(const Assignment& assignment, const port::Passing& matched, const ProbeStore& probes, Record& record,
            Record& body);

}  // namespace areal::sim
