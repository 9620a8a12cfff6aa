#include "sim/fault/value_source.h"

#include <algorithm>

namespace areal::sim {
namespace {

constexpr std::string_view kFieldPrefix = "field:";
constexpr std::string_view kProbePrefix = "node.";
constexpr std::string_view kSelfPrefix = "self.";

std::array<std::uint64_t, 2> copy_words(const std::uint64_t* words, std::size_t count) {
  std::array<std::uint64_t, 2> copy{};
  std::copy_n(words, count, copy.begin());
  return copy;
}

}  // namespace

bool same_type(const FieldInfo& a, const FieldInfo& b) {
  return a.type == b.type && std::ranges::equal(a.names, b.names);
}

Result<ValueSource> ValueSource::compile(const config::FieldValue& value, const FieldInfo& target,
                                         const EventKind& matched, const RuleScope& scope) {
  const std::string_view text = value.value;
  if (text.starts_with(kFieldPrefix)) {
    return compile_field(text.substr(kFieldPrefix.size()), target, matched, scope, value.line);
  }
  if (text.starts_with(kProbePrefix)) {
    return compile_probe(text.substr(kProbePrefix.size()), target, scope, value.line);
  }
  const auto words = parse_value(target, text, scope.directory, value.line);
  if (!words) return words.error();
  ValueSource source;
  source.literal_ = *words;
  return source;
}

Result<ValueSource> ValueSource::compile_field(std::string_view name, const FieldInfo& target, const EventKind& matched,
                                               const RuleScope& scope, int line) {
  auto ref = FieldRef::find(scope.kinds, matched, name, line);
  if (!ref) return ref.error();
  for (const FieldSpot& spot : ref->spots()) {
    if (same_type(spot.field, target)) continue;
    return error_at(line, "field " + std::string(name) + " has not the type of " + std::string(target.name));
  }
  return of_field(std::move(*ref));
}

Result<ValueSource> ValueSource::compile_probe(std::string_view text, const FieldInfo& target, const RuleScope& scope,
                                               int line) {
  ValueSource source;
  source.of_self_ = text.starts_with(kSelfPrefix);
  if (source.of_self_) text.remove_prefix(kSelfPrefix.size());
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) {
    return error_at(line, "a probe is node.KIND.FIELD or node.self.KIND.FIELD, such as node.version_published.version");
  }
  const auto kind = find_kind(scope.kinds, text.substr(0, dot), line);
  if (!kind) return kind.error();
  if (class_of((*kind)->id) != KindClass::kNote) {
    return error_at(line, "a probe reads notes, and " + std::string((*kind)->name) + " is none");
  }
  const auto ref = FieldRef::find(scope.kinds, {*kind, false}, text.substr(dot + 1), line);
  if (!ref) return ref.error();
  if (!same_type(ref->info(), target)) {
    return error_at(line, "the probe's field has not the type of " + std::string(target.name));
  }
  source.probe_ = (*kind)->id;
  source.probe_word_ = ref->spots().front().word;
  source.probe_words_ = ref->info().words;
  return source;
}

ValueSource ValueSource::of_field(FieldRef field) {
  ValueSource source;
  source.field_ = std::move(field);
  return source;
}

ValueSource ValueSource::of_literal(std::uint64_t word) {
  ValueSource source;
  source.literal_[0] = word;
  return source;
}

std::optional<std::array<std::uint64_t, 2>> ValueSource::read(const port::Passing& matched,
                                                              const ProbeStore& probes) const {
  if (field_.has_value()) {
    const std::uint64_t* words = field_->words(matched.record, matched.body);
    if (words == nullptr) return std::nullopt;
    return copy_words(words, field_->info().words);
  }
  if (probe_ != 0) {
    const Record* note = probes.latest(probe_, of_self_ ? matched.node : NodeId{});
    if (note == nullptr) return std::nullopt;
    return copy_words(&note->words[probe_word_], probe_words_);
  }
  return literal_;
}

Result<Assignment> compile_assignment(const config::FieldValue& value, const EventKind& target,
                                      const EventKind& matched, const RuleScope& scope) {
  auto ref = FieldRef::find(scope.kinds, target, value.name, value.line);
  if (!ref) return ref.error();
  auto source = ValueSource::compile(value, ref->info(), matched, scope);
  if (!source) return source.error();
  return Assignment{std::move(*ref), std::move(*source)};
}

void assign(const Assignment& assignment, const port::Passing& matched, const ProbeStore& probes, Record& record,
            Record& body) {
  std::uint64_t* target = assignment.target.words(record, body);
  const auto value = assignment.source.read(matched, probes);
  if (target == nullptr || !value.has_value()) return;
  std::copy_n(value->begin(), assignment.target.info().words, target);
}

}  // namespace areal::sim
