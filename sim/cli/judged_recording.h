// Records a merged trace, judges it, and counts what its story counts.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/record/recorder.h"
#include "sim/check/judge.h"
#include "sim/cli/failure.h"
#include "sim/cli/story.h"

namespace areal::cli {

// What a merged trace lacks.
struct MergeGaps {
  bool is_whole = true;   // Nothing is missing that could have been there.
  bool has_gaps = false;  // What a killed process did last is missing, and a violation may be no more than that.
};

class JudgedRecording final : public port::TraceSink {
 public:
  // Both outlive it.
  JudgedRecording(record::Recorder& recorder, const sim::Room& room);

  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { recorder_.on_state(node, slot, digest); }
  void on_stream(std::uint32_t stream, std::string_view name) override { recorder_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override { recorder_.on_decision(decision); }

  // Violations are kept in any case. To be called once, after the last event.
  sim::RunResult conclude(const MergeGaps& gaps);
  [[nodiscard]] const Story::Totals& totals() const { return story_.totals(); }
  [[nodiscard]] const CauseLog& causes() const { return causes_; }

 private:
  void on_effect(const Record& body);

  record::Recorder& recorder_;
  sim::Judges judges_;
  sim::Violations violations_;
  Story story_;  // Prints nothing.
  CauseLog causes_;
  port::TraceEvent last_;
  std::uint64_t published_ = 0;
  std::vector<std::string> refusals_;
  std::optional<port::RunEnded> ended_;
};

}  // namespace areal::cli
