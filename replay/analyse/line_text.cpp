#include "replay/analyse/line_text.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/node/remote_cause.h"

namespace areal::analyse {

namespace {

std::string time_text(Instant at) { return to_text(Duration{at.ns}); }

void add_record_fields(const record::StoredKinds& kinds, std::string_view prefix, const Record& record,
                       std::vector<NamedValue>& fields) {
  fields.push_back({std::string(prefix), record.kind == 0 ? "-" : kinds.name(record.kind)});
  std::size_t word = 0;
  if (const KindInfo* kind = kinds.find(record.kind); kind != nullptr) {
    for (const FieldInfo& field : kind->fields) {
      if (word + field.words > record.size) break;
      fields.push_back({fmt::format("{}.{}", prefix, field.name), field_text(field, record.view().subspan(word))});
      word += field.words;
    }
  }
  for (; word < record.size; ++word) {
    fields.push_back({fmt::format("{}.word{}", prefix, word), std::to_string(record.words[word])});
  }
}

// The number, or process and number where the cause lies in another process's recording.
std::string cause_text(const record::RunReader& reader, std::uint64_t cause) {
  if (!node::is_remote(cause)) return std::to_string(cause);
  const node::RemoteCause remote = node::remote_cause_of(cause);
  return fmt::format("{} #{}: {}", reader.names().name(remote.node), remote.incarnation, remote.seq);
}

std::vector<NamedValue> event_fields(const record::RunReader& reader, const port::TraceEvent& event) {
  std::vector<NamedValue> fields{
      {"seq", std::to_string(event.seq)},         {"cause", cause_text(reader, event.cause)},
      {"lamport", std::to_string(event.lamport)}, {"at_ns", std::to_string(event.at.ns)},
      {"node", reader.names().name(event.node)},  {"incarnation", std::to_string(event.incarnation)},
      {"slot", std::to_string(event.slot.value)}, {"what", std::string(what_text(event.what))},
      {"rule", std::to_string(event.rule)},
  };
  add_record_fields(reader.kinds(), "record", event.record, fields);
  add_record_fields(reader.kinds(), "body", event.body, fields);
  return fields;
}

std::string stream_name(const record::RunReader& reader, std::uint32_t stream) {
  const auto streams = reader.streams();
  return stream < streams.size() && !streams[stream].empty() ? streams[stream] : "stream" + std::to_string(stream);
}

}  // namespace

std::string_view what_text(port::TraceWhat what) {
  switch (what) {
    case port::TraceWhat::kInput:
      return "input";
    case port::TraceWhat::kEffect:
      return "effect";
    case port::TraceWhat::kFault:
      return "fault";
    case port::TraceWhat::kDropped:
      return "dropped";
  }
  return "?";
}

std::string event_line(const record::RunReader& reader, const port::TraceEvent& event) {
  const record::StoredKinds& kinds = reader.kinds();
  std::string text =
      fmt::format("{:>9} {:>12}  {:<28} {:<7} {}", event.seq, time_text(event.at),
                  reader.names().name(event.node, event.slot), what_text(event.what), kinds.to_text(event.record));
  if (event.body.kind != 0) text += " " + kinds.to_text(event.body);
  if (event.cause != 0) text += fmt::format("  <- {}", cause_text(reader, event.cause));
  if (event.rule != 0) text += fmt::format("  rule {}", event.rule);
  return text;
}

std::string line_text(const record::RunReader& reader, const TraceLine& line) {
  if (const auto* event = std::get_if<port::TraceEvent>(&line)) return event_line(reader, *event);
  if (const auto* state = std::get_if<StateLine>(&line)) {
    return fmt::format("{:>22}  {:<28} state   {}", "", reader.names().name(state->node, state->slot),
                       to_hex(state->digest));
  }
  if (const auto* stream = std::get_if<StreamLine>(&line)) {
    return fmt::format("{:>22}  {:<28} stream  {}", "", stream->name, stream->stream);
  }
  const auto& decision = std::get<port::Decision>(line);
  return fmt::format("{:>22}  {:<28} decided {} of {}, number {}", "", stream_name(reader, decision.stream),
                     decision.chosen, decision.bound, decision.ordinal);
}

std::vector<NamedValue> line_fields(const record::RunReader& reader, const TraceLine& line) {
  if (const auto* event = std::get_if<port::TraceEvent>(&line)) return event_fields(reader, *event);
  if (const auto* state = std::get_if<StateLine>(&line)) {
    return {{"state.of", reader.names().name(state->node, state->slot)}, {"state.digest", to_hex(state->digest)}};
  }
  if (const auto* stream = std::get_if<StreamLine>(&line)) {
    return {{"stream.number", std::to_string(stream->stream)}, {"stream.name", stream->name}};
  }
  const auto& decision = std::get<port::Decision>(line);
  return {{"decision.stream", stream_name(reader, decision.stream)},
          {"decision.ordinal", std::to_string(decision.ordinal)},
          {"decision.bound", std::to_string(decision.bound)},
          {"decision.chosen", std::to_string(decision.chosen)}};
}

}  // namespace areal::analyse
