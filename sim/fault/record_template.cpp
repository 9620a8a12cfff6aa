#include "sim/fault/record_template.h"

#include <optional>

#include "engine/port/types.h"

namespace areal::sim {
namespace {

struct Answer {
  KindId effect;
  KindId input;
};
constexpr std::array kAnswers{
    Answer{port::JoinGroup::kKind, port::GroupJoined::kKind},
    Answer{port::PostBatch::kKind, port::BatchDone::kKind},
    Answer{port::AbortGroup::kKind, port::GroupAborted::kKind},
    Answer{port::StartCompute::kKind, port::ComputeDone::kKind},
    Answer{port::ReserveBuffer::kKind, port::BufferReady::kKind},
    Answer{port::ReleaseBuffer::kKind, port::BufferReleased::kKind},
    Answer{port::QueryMemory::kKind, port::MemoryUsed::kKind},
    Answer{port::StorePut::kKind, port::StoreDone::kKind},
    Answer{port::StoreGet::kKind, port::StoreDone::kKind},
    Answer{port::LeasePort::kKind, port::PortLeased::kKind},
    Answer{port::StartProcess::kKind, port::ProcessStarted::kKind},
    Answer{port::StopProcess::kKind, port::ProcessExited::kKind},
    Answer{port::ArmTimer::kKind, port::TimerFired::kKind},
};

// A message is answered by a send and the other way round; likewise for what protocols of one node tell each other.
KindId reply_carrier(KindId carrier) {
  if (carrier == port::Send::kKind) return port::MessageIn::kKind;
  if (carrier == port::MessageIn::kKind) return port::Send::kKind;
  if (carrier == port::Tell::kKind) return port::TellIn::kKind;
  if (carrier == port::TellIn::kKind) return port::Tell::kKind;
  return 0;
}

Record empty_record(const KindInfo& kind) {
  Record record;
  record.kind = kind.id;
  for (const FieldInfo& field : kind.fields) record.size = static_cast<std::uint8_t>(record.size + field.words);
  return record;
}

// The carrier that the fields of an emitted body ask for; 0 if they ask for none.
KindId named_carrier(const config::RuleSpec& spec) {
  const auto says = [&spec](std::string_view name) {
    return std::ranges::find(spec.emit_fields, name, &config::FieldValue::name) != spec.emit_fields.end();
  };
  if (says("to")) return port::Send::kKind;
  if (says("from")) return port::MessageIn::kKind;
  if (says("to_slot")) return port::Tell::kKind;
  if (says("from_slot")) return port::TellIn::kKind;
  return 0;
}

}  // namespace

KindId answer_of(KindId effect) {
  const auto answer = std::ranges::find(kAnswers, effect, &Answer::effect);
  return answer == kAnswers.end() ? KindId{0} : answer->input;
}

Result<RecordTemplate> RecordTemplate::emitted(const config::RuleSpec& spec, const EventKind& matched,
                                               KindId matched_record, const RuleScope& scope) {
  const auto kind = find_kind(scope.kinds, spec.emit_kind, spec.line);
  if (!kind) return kind.error();
  RecordTemplate made;
  made.matched_record_ = matched_record;
  EventKind target{*kind, false};
  switch (class_of((*kind)->id)) {
    case KindClass::kFault:
      return error_at(spec.line, "a rule cannot emit a fault");
    case KindClass::kInput:
    case KindClass::kEffect:
      if (is_carrier((*kind)->id)) return error_at(spec.line, "name the kind of the body, not " + spec.emit_kind);
      made.record_ = empty_record(**kind);
      break;
    case KindClass::kNote:
      made.record_ = empty_record(kKindInfo<port::Note>);
      made.body_ = empty_record(**kind);
      break;
    case KindClass::kBody: {
      const KindId named = named_carrier(spec);
      const KindId carrier = named != 0 ? named : matched_record;
      if (!is_carrier(carrier) || carrier == port::Note::kKind) {
        return error_at(spec.line,
                        spec.emit_kind + " needs `to` (a send), `from` (a message), `to_slot` or `from_slot`");
      }
      const KindInfo& info = *scope.kinds.find(carrier);
      made.record_ = empty_record(info);
      made.body_ = empty_record(**kind);
      if (named == 0) made.copy_equal_names(info, matched, scope);
      target.is_input = class_of(carrier) == KindClass::kInput;
      break;
    }
  }
  for (const config::FieldValue& value : spec.emit_fields) AREAL_TRY(made.add(value, target, matched, scope));
  return made;
}

Result<RecordTemplate> RecordTemplate::answering(const config::RuleSpec& spec, const EventKind& matched,
                                                 KindId matched_record, const RuleScope& scope) {
  const KindId reply = reply_carrier(matched_record);
  const KindInfo& matched_info = *scope.kinds.find(matched_record);
  const KindInfo* kind = scope.kinds.find(answer_of(matched_record));
  if (!spec.emit_kind.empty()) {
    const auto named = find_kind(scope.kinds, spec.emit_kind, spec.line);
    if (!named) return named.error();
    kind = *named;
  }
  const bool fits = kind != nullptr && (reply != 0 ? class_of(kind->id) == KindClass::kBody
                                                   : class_of(kind->id) != class_of(matched_record));
  if (!fits || is_carrier(kind->id)) {
    return error_at(spec.line, "name what answers " + std::string(matched_info.name) +
                                   (reply != 0 ? ": the kind of the reply" : ": an input or effect on the other side"));
  }
  RecordTemplate made;
  made.matched_record_ = matched_record;
  if (reply != 0) {
    const KindInfo& carrier = *scope.kinds.find(reply);
    made.record_ = empty_record(carrier);
    made.body_ = empty_record(*kind);
    made.copy_address(carrier, matched_info, scope);
  } else {
    made.record_ = empty_record(*kind);
  }
  made.copy_equal_names(*kind, matched, scope);
  const EventKind target{kind, class_of(made.record_.kind) == KindClass::kInput};
  for (const config::FieldValue& value : spec.emit_fields) AREAL_TRY(made.add(value, target, matched, scope));
  for (const config::FieldValue& value : spec.set) AREAL_TRY(made.add(value, target, matched, scope));
  return made;
}

Result<Unit> RecordTemplate::add(const config::FieldValue& value, const EventKind& target, const EventKind& matched,
                                 const RuleScope& scope) {
  auto assignment = compile_assignment(value, target, matched, scope);
  if (!assignment) return assignment.error();
  assignments_.push_back(std::move(*assignment));
  return Unit{};
}

void RecordTemplate::copy_equal_names(const KindInfo& target, const EventKind& matched, const RuleScope& scope) {
  for (const FieldInfo& field : target.fields) {
    const auto from = FieldRef::find(scope.kinds, matched, field.name, 0);
    const auto to = FieldRef::find(scope.kinds, {&target, false}, field.name, 0);
    if (!from || !to) continue;
    const auto fits = [&field](const FieldSpot& spot) { return same_type(spot.field, field); };
    if (std::ranges::all_of(from->spots(), fits)) assignments_.push_back({*to, ValueSource::of_field(*from)});
  }
}

void RecordTemplate::copy(const KindInfo& target, std::string_view name, const KindInfo& from,
                          std::string_view from_name, const RuleScope& scope) {
  const auto to = FieldRef::find(scope.kinds, {&target, false}, name, 0);
  const auto source = FieldRef::find(scope.kinds, {&from, false}, from_name, 0);
  AREAL_CHECK(to.has_value());
  AREAL_CHECK(source.has_value());
  assignments_.push_back({*to, ValueSource::of_field(*source)});
}

void RecordTemplate::copy_address(const KindInfo& record, const KindInfo& matched, const RuleScope& scope) {
  const bool answers_input = class_of(matched.id) == KindClass::kInput;
  copy(record, answers_input ? "to_slot" : "from_slot", matched, answers_input ? "from_slot" : "to_slot", scope);
  if (matched.id != port::Send::kKind && matched.id != port::MessageIn::kKind) return;
  copy(record, answers_input ? "to" : "from", matched, answers_input ? "from" : "to", scope);
  copy(record, "request", matched, "request", scope);
  const auto kind = FieldRef::find(scope.kinds, {&record, false}, "kind", 0);
  AREAL_CHECK(kind.has_value());
  assignments_.push_back({*kind, ValueSource::of_literal(to_word(port::MessageKind::kReply))});
}

void RecordTemplate::make(const port::Passing& matched, const ProbeStore& probes, port::Passing& out) const {
  out.is_input = is_input();
  out.record = record_;
  out.body = body_;
  for (const Assignment& assignment : assignments_) assign(assignment, matched, probes, out.record, out.body);
}

}  // namespace areal::sim
