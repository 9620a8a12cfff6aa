// INV-TASK-TERMINAL and INV-DISP-CONSERVE: every sample group ends once, and no token is made up, doubled or dropped.
//
// Every stored segment is one that its engine decoded, stored once; the tokens of a finished group are those stored for
// its samples. Samples are numbered through: group g of n samples has samples (g-1)*n+1 to g*n. What the pool had open
// is forgotten when its process restarts. A recovery of training voids what was under way: such a group may be
// admitted again, and need not end.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class TaskJudge final : public JudgeOf<TaskJudge> {
 public:
  explicit TaskJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "task"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void measure(std::vector<Measure>& out) const override;

 private:
  enum class Stage : std::uint8_t { kAdmitted, kAccepted, kRejected, kConsumed };
  struct Task {
    Stage stage = Stage::kAdmitted;
    NodeId node;
    std::uint64_t seq = 0;
    bool is_void = false;  // A recovery came after it was admitted.
  };
  struct Sample {
    bool routed = false;
    std::uint64_t seq = 0;
    std::uint64_t stored = 0;                    // Tokens.
    Flat<std::uint64_t, std::uint32_t> decoded;  // Tokens of a segment: how many such are not stored yet.
  };
  void on_stored(const port::TraceEvent& event, const port::SegmentStored& stored, Violations& out);
  void on_finished(const port::TraceEvent& event, const port::GroupFinished& finished, Violations& out);
  void on_consumed(const port::TraceEvent& event, const port::GroupConsumed& consumed, Violations& out);
  void report(const port::TraceEvent& event, InvariantId invariant, std::uint64_t related, const std::string& why,
              Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  Flat<SampleGroupId, Task> tasks_;
  Flat<SampleId, Sample> samples_;
  bool routed_seen_ = false;
  bool decoded_seen_ = false;
  std::uint64_t admitted_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t rejected_ = 0;
};

}  // namespace areal::sim
