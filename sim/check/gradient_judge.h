// INV-DELTA-GRADS: gradient memory that was given up for an update is there again when the update has returned.
//
// Looked at when an update ended well (all ranks answered that they had executed it), when a rank enters the next one,
// and when it begins to train. Until a rank says otherwise its gradients are held.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class GradientJudge final : public JudgeOf<GradientJudge> {
 public:
  explicit GradientJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "gradient"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  void report(const port::TraceEvent& event, NodeId node, std::uint64_t since, const std::string& when,
              Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  Version version_ = 0;                   // Of the update that ranks entered last.
  Flat<NodeId, std::uint64_t> given_up_;  // seq of when.
};

}  // namespace areal::sim
