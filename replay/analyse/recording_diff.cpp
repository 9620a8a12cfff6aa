#include "replay/analyse/recording_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "replay/analyse/line_text.h"
#include "replay/analyse/trace_lines.h"

namespace areal::analyse {

namespace {

using record::RunReader;

void add_difference(std::string_view name, std::string left, std::string right, std::vector<ValueDifference>& out) {
  if (left != right) out.push_back({std::string(name), std::move(left), std::move(right)});
}

std::string overrides_text(const record::RunInfo& info) {
  std::string text;
  for (const auto& [key, value] : info.overrides) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

std::vector<ValueDifference> head_differences(const RunReader& left, const RunReader& right) {
  std::vector<ValueDifference> heads;
  for (const char* key : {"scenario", "half", "program", "seed", "verdict"}) {
    add_difference(key, left.value(key), right.value(key), heads);
  }
  add_difference("overrides", overrides_text(left.info()), overrides_text(right.info()), heads);
  const std::string& left_text = left.info().scenario_text;
  const std::string& right_text = right.info().scenario_text;
  add_difference("scenario text", to_hex(hash_text(left_text)), to_hex(hash_text(right_text)), heads);
  return heads;
}

// How many blocks at the start hold the same lines, cut alike.
std::size_t common_blocks(const RunReader& left, const RunReader& right) {
  const auto is_equal = [&](std::size_t index) {
    return left.blocks()[index].chain == right.blocks()[index].chain &&
           left.blocks()[index].last_seq == right.blocks()[index].last_seq;
  };
  std::size_t low = 0;
  std::size_t high = std::min(left.blocks().size(), right.blocks().size());
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (is_equal(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The first pair of lines that differ; a missing one is the end.
struct Parting {
  std::optional<TraceLine> left, right;
  std::optional<port::TraceEvent> last_common;
};

Result<Parting> find_parting(const RunReader& left, const RunReader& right, std::size_t first_block) {
  Parting parting;
  LineStream left_lines(left, first_block);
  LineStream right_lines(right, first_block);
  while (true) {
    const auto left_line = left_lines.next();
    if (!left_line) return left_line.error();
    const auto right_line = right_lines.next();
    if (!right_line) return right_line.error();
    const bool both = *left_line != nullptr && *right_line != nullptr;
    if (!both || !same_line(**left_line, **right_line)) {
      if (*left_line != nullptr) parting.left = **left_line;
      if (*right_line != nullptr) parting.right = **right_line;
      return parting;
    }
    if (const auto* event = std::get_if<port::TraceEvent>(*left_line)) parting.last_common = *event;
  }
}

std::vector<ValueDifference> field_differences(const std::vector<NamedValue>& left,
                                               const std::vector<NamedValue>& right) {
  std::vector<ValueDifference> out;
  const auto value_in = [](const std::vector<NamedValue>& fields, const std::string& name) -> std::string {
    const auto found = std::ranges::find(fields, name, &NamedValue::name);
    return found != fields.end() ? found->value : "-";
  };
  for (const NamedValue& field : left) add_difference(field.name, field.value, value_in(right, field.name), out);
  for (const NamedValue& field : right) {
    if (std::ranges::find(left, field.name, &NamedValue::name) == left.end()) {
      out.push_back({field.name, "-", field.value});
    }
  }
  return out;
}

// States in order and the last ordinal of each stream, of one block.
struct BlockSummary : port::TraceSink {
  void on_event(const port::TraceEvent& /*event*/) override {}
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { states.push_back({node, slot, digest}); }
  void on_stream(std::uint32_t /*stream*/, std::string_view /*name*/) override {}
  void on_decision(const port::Decision& decision) override {
    const auto place = std::ranges::lower_bound(cursors, decision.stream, {}, &port::Decision::stream);
    if (place != cursors.end() && place->stream == decision.stream) {
      *place = decision;
    } else {
      cursors.insert(place, decision);
    }
  }

  std::vector<StateLine> states;
  std::vector<port::Decision> cursors;  // By stream.
};

std::string first_state(const RunReader& reader, const BlockSummary& left, const BlockSummary& right) {
  const std::size_t count = std::min(left.states.size(), right.states.size());
  for (std::size_t i = 0; i < count; ++i) {
    const StateLine& state = left.states[i];
    if (!same_line(state, right.states[i])) return reader.names().name(state.node, state.slot);
  }
  return {};
}

std::vector<ValueDifference> cursor_differences(const RunReader& reader, const BlockSummary& left,
                                                const BlockSummary& right) {
  std::vector<ValueDifference> out;
  const auto ordinal_in = [](const BlockSummary& side, std::uint32_t stream) -> std::string {
    const auto found = std::ranges::find(side.cursors, stream, &port::Decision::stream);
    return found != side.cursors.end() ? std::to_string(found->ordinal) : "-";
  };
  const auto streams = reader.streams();
  for (std::uint32_t stream = 0; stream < streams.size(); ++stream) {
    add_difference(streams[stream], ordinal_in(left, stream), ordinal_in(right, stream), out);
  }
  return out;
}

std::vector<std::string> ancestors_of(const RunReader& reader, std::uint64_t cause) {
  std::vector<std::string> out;
  while (cause != 0 && out.size() < kMaxAncestors) {
    const auto event = reader.event(cause);
    if (!event) break;
    out.push_back(event_line(reader, *event));
    if (event->cause >= cause) break;  // A cause lies before its event; anything else would not end.
    cause = event->cause;
  }
  return out;
}

// A guess from what differs first; each names the ways in which programs come to do that.
std::string likely_reason(const RecordingDiff& diff, const Parting& parting) {
  if (!parting.left || !parting.right) return "one run ended earlier, or its recording is cut";
  if (!diff.heads.empty() && diff.heads.front().name != "verdict") return "the runs were not started alike";
  if (parting.left->index() != parting.right->index()) return "a decision or a step more: an order that is not fixed";
  if (std::holds_alternative<StateLine>(*parting.left)) {
    return "equal inputs, another state: unset memory, an order by address, or a float in that protocol";
  }
  if (std::holds_alternative<port::Decision>(*parting.left)) {
    return "another choice: a replay with changed decisions, or a draw whose order is not fixed";
  }
  const bool only_time = std::ranges::all_of(diff.fields, [](const auto& field) { return field.name == "at_ns"; });
  if (only_time) return "only the time differs: a wall clock, or a delay from a float";
  const bool other_event = std::ranges::any_of(
      diff.fields, [](const auto& field) { return field.name == "node" || field.name == "record"; });
  if (other_event) return "another event came first: an order that is not fixed, or equal times without a tie-breaker";
  return "the same event with other values: an outside input, a float, or unset memory";
}

}  // namespace

Result<RecordingDiff> diff_recordings(const RunReader& left, const RunReader& right) {
  RecordingDiff diff;
  diff.heads = head_differences(left, right);
  const std::size_t common = common_blocks(left, right);
  const auto parting = find_parting(left, right, common);
  if (!parting) return parting.error();
  if (!parting->left && !parting->right) return diff;
  diff.equal = false;

  std::optional<port::TraceEvent> last = parting->last_common;
  if (!last && common > 0) {  // The block begins with the line that differs.
    const auto before = left.event(left.blocks()[common - 1].last_seq);
    if (before) last = *before;
  }
  if (last) diff.last_common = event_line(left, *last);
  diff.seq = last ? last->seq : 0;
  std::uint64_t cause = last ? last->seq : 0;  // Other lines than events are led to by the event before.
  const RunReader& side = parting->left ? left : right;
  const TraceLine& line = parting->left ? *parting->left : *parting->right;
  if (const auto* event = std::get_if<port::TraceEvent>(&line)) {
    diff.seq = event->seq;
    cause = event->cause;
  }
  diff.left = parting->left ? line_text(left, *parting->left) : "(end)";
  diff.right = parting->right ? line_text(right, *parting->right) : "(end)";
  const std::vector<NamedValue> none;
  diff.fields = field_differences(parting->left ? line_fields(left, *parting->left) : none,
                                  parting->right ? line_fields(right, *parting->right) : none);
  BlockSummary left_summary;
  BlockSummary right_summary;
  if (common < left.blocks().size()) AREAL_TRY(left.read_block(common, left_summary));
  if (common < right.blocks().size()) AREAL_TRY(right.read_block(common, right_summary));
  diff.first_state = first_state(left, left_summary, right_summary);
  diff.cursors = cursor_differences(left, left_summary, right_summary);
  diff.ancestors = ancestors_of(side, cause);
  diff.likely = likely_reason(diff, *parting);
  return diff;
}

std::string to_text(const RecordingDiff& diff) {
  std::string text;
  const auto add_values = [&text](std::string_view title, const std::vector<ValueDifference>& values) {
    for (const ValueDifference& value : values) {
      text += fmt::format("{:<10} {:<24} {} | {}\n", title, value.name, value.left, value.right);
    }
  };
  add_values("head", diff.heads);
  if (diff.equal) return text + "equal\n";
  text += fmt::format("differ at event {}\nleft  {}\nright {}\n", diff.seq, diff.left, diff.right);
  add_values("field", diff.fields);
  if (!diff.last_common.empty()) text += fmt::format("last common event\n      {}\n", diff.last_common);
  if (!diff.first_state.empty()) text += fmt::format("first state that differs: {}\n", diff.first_state);
  add_values("decisions", diff.cursors);
  if (!diff.ancestors.empty()) text += "led to by, nearest first\n";
  for (const std::string& ancestor : diff.ancestors) text += fmt::format("      {}\n", ancestor);
  return text + fmt::format("likely: {}\n", diff.likely);
}

}  // namespace areal::analyse
