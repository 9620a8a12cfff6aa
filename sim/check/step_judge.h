// INV-6 inside training: no rank ends a step with fewer group operations than the others post for it.
//
// A rank that leaves out the reduction of the gradients' norm leaves the others waiting; no meeting ever completes that
// would show it. So what each rank posts on the group of the training world is counted until it says that it trained
// the step, and compared when all have, or when that world ends.
#pragma once
#include "sim/check/course.h"
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class StepJudge final : public JudgeOf<StepJudge> {
 public:
  explicit StepJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "step"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void at_end(bool finished, Violations& out) override;

 private:
  // Whether a member ended the step with less than `course`, or the other way round: nobody else may ever end it.
  [[nodiscard]] bool differs(const Course& course) const;
  void close(const port::TraceEvent& event, Violations& out);

  SetupPtr setup_;
  Incarnations incarnations_;
  GroupId group_;
  Version version_ = 0;  // That the step makes, once a rank said so.
  std::uint64_t step_ = 0;
  Flat<NodeId, Course> courses_;
  port::TraceEvent last_;
};

}  // namespace areal::sim
