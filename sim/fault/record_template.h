// Makes the inputs and effects that rules invent, and the answers that they give for a protocol or for the world.
#pragma once
#include <vector>

#include "sim/fault/value_source.h"

namespace areal::sim {

// A record with its body, and what is written into them from the matched event.
class RecordTemplate {
 public:
  // A new input or effect of `spec.emit_kind`. A body kind travels as `to` (a send), `from` (a message), `to_slot` (a
  // tell) or `from_slot` (told) says; without any of them, as the matched event does, whose carrier is
  // `matched_record`.
  static Result<RecordTemplate> emitted(const config::RuleSpec& spec, const EventKind& matched, KindId matched_record,
                                        const RuleScope& scope);
  // What answers a matched event whose record is of kind `matched_record`: the input that ends an effect, or the reply
  // to a request. Fields of equal name are copied from it; then come `spec.emit_fields` and `spec.set`.
  static Result<RecordTemplate> answering(const config::RuleSpec& spec, const EventKind& matched, KindId matched_record,
                                          const RuleScope& scope);

  // The kind of record that a matched event must have; the others are answered by another template.
  [[nodiscard]] KindId matched_record() const { return matched_record_; }
  [[nodiscard]] bool is_input() const { return class_of(record_.kind) == KindClass::kInput; }
  [[nodiscard]] const std::vector<Assignment>& assignments() const { return assignments_; }
  // Fills record, body and is_input of `out`.
  void make(const port::Passing& matched, const ProbeStore& probes, port::Passing& out) const;

 private:
  Result<Unit> add(const config::FieldValue& value, const EventKind& target, const EventKind& matched,
                   const RuleScope& scope);
  void copy_equal_names(const KindInfo& target, const EventKind& matched, const RuleScope& scope);
  void copy(const KindInfo& target, std::string_view name, const KindInfo& from, std::string_view from_name,
            const RuleScope& scope);
  void copy_address(const KindInfo& record, const KindInfo& matched, const RuleScope& scope);

  KindId matched_record_ = 0;
  Record record_;
  Record body_;
  std::vector<Assignment> assignments_;
};

// The kind of input that ends an effect of this kind; 0 if none does, or a reply of any kind may.
KindId answer_of(KindId effect);

}  // namespace areal::sim
