// INV-DELTA-UNANIMOUS, INV-DELTA-DTYPE-ROUNDS and INV-DELTA-NNZ-SLOTS: all ranks of an attempt run the same exchange.
//
// Kept for the attempt that is under way: what each sender voted, and for each rank the passes it entered (round, which
// wire dtype, dtype), until it goes on to the verifying sum. Compared when the attempt ends, so that a rank that left
// out a pass is named although the others wait for it. Counts are compared with the data that follow at once. A rank
// that leaves out what others enter breaks INV-6 too.
#pragma once
#include <optional>

#include "sim/check/attempt_key.h"
#include "sim/check/course.h"
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class RoundsJudge final : public JudgeOf<RoundsJudge> {
 public:
  explicit RoundsJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "rounds"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void at_end(bool finished, Violations& out) override;

 private:
  struct Member {
    Course course;
    std::optional<port::UpdateMode> voted;
    bool dense = false;
    bool sparse = false;
    BatchId counts_batch;                  // The counts that are awaited or came last.
    std::optional<std::uint64_t> counted;  // Elements that will come in the pass that is under way.
  };
  void on_post(const port::TraceEvent& event, const port::PostBatch& batch, Violations& out);
  void on_pass(const port::TraceEvent& event, const port::PostBatch& batch, Member& member, Violations& out) const;
  // The attempt is over, or another one begins.
  void close(const port::TraceEvent& event, Violations& out);
  void judge_votes(const port::TraceEvent& event, Violations& out) const;
  void judge_passes(const port::TraceEvent& event, Violations& out) const;
  void report(const port::TraceEvent& event, InvariantId invariant, const Course& who, const std::string& why,
              Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  AttemptKey key_;
  Flat<NodeId, Member> members_;
  port::TraceEvent last_;
};

}  // namespace areal::sim
