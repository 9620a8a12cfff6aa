#include "sim/fault/event_matcher.h"

namespace areal::sim {
namespace {

// Which side of the seam events of a kind are on; a scenario says it for bodies only.
bool side_of(const KindInfo& kind, bool as_written) {
  switch (class_of(kind.id)) {
    case KindClass::kInput:
      return true;
    case KindClass::kBody:
      return as_written;
    case KindClass::kEffect:
    case KindClass::kNote:
    case KindClass::kFault:
      return false;
  }
  return false;
}

}  // namespace

Result<EventMatcher> EventMatcher::compile(const config::EventMatch& match, const KindTable& kinds,
                                           const NodeDirectory& directory) {
  EventMatcher matcher;
  const auto info = find_kind(kinds, match.kind, match.line);
  if (!info) return info.error();
  matcher.kind_ = {*info, side_of(**info, match.is_input)};
  auto nodes = NodeSet::find(directory, match.node, match.line);
  if (!nodes) return nodes.error();
  matcher.nodes_ = std::move(*nodes);
  for (const config::FieldValue& field : match.fields) {
    auto test = compile_field(field, matcher.kind_, kinds, directory);
    if (!test) return test.error();
    matcher.tests_.push_back(std::move(*test));
  }
  matcher.occurrence_ = match.occurrence;
  return matcher;
}

Result<EventMatcher::FieldTest> EventMatcher::compile_field(const config::FieldValue& field, const EventKind& kind,
                                                            const KindTable& kinds, const NodeDirectory& directory) {
  const auto ref = FieldRef::find(kinds, kind, field.name, field.line);
  if (!ref) return ref.error();
  FieldTest test;
  for (const FieldSpot& spot : ref->spots()) {
    const auto value = parse_value(spot.field, field.value, directory, field.line);
    // A carrier may carry several kinds that have the field: one that reads the value is enough.
    if (value) test.push_back({spot, *value});
    if (!value && ref->spots().size() == 1) return value.error();
  }
  if (test.empty()) return parse_value(ref->info(), field.value, directory, field.line).error();
  return test;
}

bool EventMatcher::passes(const FieldTest& test, const Record& record, const Record& body) {
  for (const Accepted& accepted : test) {
    const FieldSpot& spot = accepted.spot;
    const Record* holder = body.kind == spot.kind ? &body : (record.kind == spot.kind ? &record : nullptr);
    if (holder == nullptr) continue;
    return std::equal(accepted.value.begin(), accepted.value.begin() + spot.field.words,
                      holder->words.begin() + static_cast<std::ptrdiff_t>(spot.word));
  }
  return false;
}

bool EventMatcher::fits(NodeId node, bool is_input, const Record& record, const Record& body) const {
  const KindId kind = kind_.info->id;
  if (body.kind != kind && record.kind != kind) return false;
  if (is_input != kind_.is_input || !nodes_.contains(node)) return false;
  return std::ranges::all_of(tests_, [&](const FieldTest& test) { return passes(test, record, body); });
}

bool EventMatcher::hit(NodeId node, bool is_input, const Record& record, const Record& body) {
  if (!fits(node, is_input, record, body)) return false;
  ++seen_;
  return occurrence_ == 0 || seen_ == occurrence_;
}

}  // namespace areal::sim
