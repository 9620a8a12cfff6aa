#include "sim/cli/judged_recording.h"

#include <algorithm>

namespace areal::cli {

JudgedRecording::JudgedRecording(record::Recorder& recorder, const sim::Room& room)
    : recorder_(recorder), judges_(sim::make_judges(room.setup)), story_(room, nullptr) {}

void JudgedRecording::on_event(const port::TraceEvent& event) {
  recorder_.on_event(event);
  judges_.on_event(event, violations_);
  story_.on_event(event);
  causes_.on_event(event);
  last_ = event;
  if (event.what == port::TraceWhat::kEffect) on_effect(event.body);
}

void JudgedRecording::on_effect(const Record& body) {
  if (body.kind == port::VersionPublished::kKind) ++published_;
  dispatch_record<port::RunEnded>(body, [this](const port::RunEnded& ended) { ended_ = ended; });
  dispatch_record<port::Refused>(body, [this](const port::Refused& note) {
    const std::string reason(areal::to_text(note.reason));
    if (std::ranges::count(refusals_, reason) == 0) refusals_.push_back(reason);
  });
}

sim::RunResult JudgedRecording::conclude(const MergeGaps& gaps) {
  sim::RunResult result;
  judges_.at_end(ended_.has_value() && gaps.is_whole, violations_);
  if (!ended_ || !gaps.is_whole) {
    result.verdict = config::Verdict::kInconclusive;
    result.why = ended_ ? "a recording is truncated, and what is missing cannot be judged"
                        : "the training loop did not say how the run ended";
  }
  if (ended_ && gaps.is_whole && ended_->end != port::RunEnd::kCompleted) {
    result.verdict = config::Verdict::kLiveness;
    result.why = "the run ended early: " + std::string(areal::to_text(ended_->end));
  }
  result.verdict = sim::verdict_with(result.verdict, violations_);
  if (gaps.has_gaps && !violations_.empty()) result.verdict = config::Verdict::kInconclusive;
  result.end = ended_;
  result.events = last_.seq;
  result.ended_at = last_.at;
  result.published = published_;
  result.violations = violations_;
  result.refusals = refusals_;
  return result;
}

}  // namespace areal::cli
