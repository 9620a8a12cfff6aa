#include "replay/analyse/replayer.h"

#include "replay/analyse/line_text.h"

namespace areal::analyse {

void ReplayComparer::on_event(const port::TraceEvent& event) {
  last_seq_ = event.seq;
  compare(event);
}

void ReplayComparer::compare(const TraceLine& line) {
  if (difference_ || !error_.empty()) return;
  auto recorded = lines_.next();
  if (!recorded) {
    error_ = recorded.error().detail;
    return;
  }
  const TraceLine* expected = *recorded;
  if (expected == nullptr) {
    if (reader_.state() == record::RecordingState::kTruncated) return;  // It ends early; what it has was repeated.
    difference_ = ReplayDifference{last_seq_, "(end)", line_text(reader_, line)};
    return;
  }
  if (!same_line(*expected, line)) {
    difference_ = ReplayDifference{last_seq_, line_text(reader_, *expected), line_text(reader_, line)};
    return;
  }
  ++compared_;
}

void ReplayComparer::finish() {
  if (difference_ || !error_.empty()) return;
  auto rest = lines_.next();
  if (!rest) {
    error_ = rest.error().detail;
  } else if (*rest != nullptr) {
    difference_ = ReplayDifference{last_seq_, line_text(reader_, **rest), "(end)"};
  }
}

}  // namespace areal::analyse
