// INV-GLOO-FENCE: a receiver waits for its device before it meets the others at the end of an update.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class FenceJudge final : public JudgeOf<FenceJudge> {
 public:
  explicit FenceJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "fence"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  SetupPtr setup_;
  Incarnations incarnations_;
  Flat<NodeId, std::uint64_t> writing_;  // seq of the StartCompute of an apply that no fence has followed.
  Flat<GroupId, port::Backend> backends_;
};

}  // namespace areal::sim
