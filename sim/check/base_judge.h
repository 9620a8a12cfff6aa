// INV-4: a delta is applied only over its proven base.
//
// Proven: the rank said in its present incarnation that it serves (or is paused at) exactly the version that the
// senders' trackers have as base when they vote for the delta.
#pragma once
#include "sim/check/engine_weights.h"

namespace areal::sim {

class BaseJudge final : public JudgeOf<BaseJudge> {
 public:
  explicit BaseJudge(const SetupPtr& setup) : setup_(setup), weights_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "base"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  void on_apply(const port::TraceEvent& event, const port::StartCompute& start, Violations& out) const;

  SetupPtr setup_;
  EngineWeights weights_;
  port::DeltaVoted voted_;  // The last one.
  std::uint64_t voted_seq_ = 0;
};

}  // namespace areal::sim
