#include "replay/analyse/replayer.h"

#include <algorithm>

#include "replay/analyse/line_text.h"

namespace areal::analyse {

// Whether the recording is at its end, or cannot be read on.
bool ReplayComparer::at_end() {
  while (words_.empty()) {
    const auto next = blocks_.next();
    if (!next) {
      error_ = next.error().detail;
      return true;
    }
    if (next->empty()) return true;
    words_ = *next;
    ++blocks_given_;
    compared_before_ = compared_;
  }
  return false;
}

// Whether the recording goes on with `line`, or nothing is compared any more. A line says by its first word how long it
// is, so one that begins as `line` does is `line`.
bool ReplayComparer::is_next(std::span<const std::uint64_t> line) {
  if (difference_ || !error_.empty()) return true;
  if (at_end()) {
    // A truncated one ends early; what it has was repeated.
    return !error_.empty() || reader_.state() == record::RecordingState::kTruncated;
  }
  if (words_.size() < line.size() || !std::equal(line.begin(), line.end(), words_.begin())) return false;
  words_ = words_.subspan(line.size());
  ++compared_;
  return true;
}

// Finds the recorded line again, as one that can be printed.
void ReplayComparer::part(const std::string& replayed) {
  blocks_.stop();
  LineStream lines(reader_, std::max<std::size_t>(blocks_given_, 1) - 1);
  auto recorded = lines.next();
  for (std::uint64_t line = compared_before_; line < compared_ && recorded && *recorded != nullptr; ++line) {
    recorded = lines.next();
  }
  if (!recorded) {
    error_ = recorded.error().detail;
    return;
  }
  difference_ = {last_seq_, *recorded != nullptr ? line_text(reader_, **recorded) : "(end)", replayed};
}

void ReplayComparer::on_event(const port::TraceEvent& event) {
  last_seq_ = event.seq;
  if (!is_next(port::TraceWords(event).view())) part(line_text(reader_, event));
}

void ReplayComparer::on_state(NodeId node, SlotId slot, const Digest128& digest) {
  if (is_next(port::TraceWords(node, slot, digest).view())) return;
  part(line_text(reader_, StateLine{node, slot, digest}));
}

void ReplayComparer::on_stream(std::uint32_t stream, std::string_view name) {
  if (is_next(port::TraceWords(stream, name).view())) return;
  part(line_text(reader_, StreamLine{stream, std::string(name)}));
}

void ReplayComparer::on_decision(const port::Decision& decision) {
  if (!is_next(port::TraceWords(decision).view())) part(line_text(reader_, decision));
}

void ReplayComparer::finish() {
  if (difference_ || !error_.empty()) return;
  if (!at_end()) part("(end)");
}

}  // namespace areal::analyse
