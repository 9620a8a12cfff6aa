// INV-8: tokens are made only on whole, proven weights, and running work is not ended unless the pause mode says so.
#pragma once
#include "sim/check/engine_weights.h"

namespace areal::sim {

class DecodeJudge final : public JudgeOf<DecodeJudge> {
 public:
  explicit DecodeJudge(const SetupPtr& setup) : setup_(setup), weights_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "decode"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  void on_decoded(const port::TraceEvent& event, const port::Decoded& decoded, Violations& out) const;
  void on_apply(const port::TraceEvent& event, const port::ApplyStarted& apply, Violations& out) const;

  SetupPtr setup_;
  EngineWeights weights_;
  Flat<EngineId, bool> paused_;
};

}  // namespace areal::sim
