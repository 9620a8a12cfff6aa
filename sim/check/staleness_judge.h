// INV-STALE-HEAD, INV-STALE-BOUND and INV-STALE-RECOVER: what may be admitted, and how old consumed tokens are.
//
// Capacity: min(max(1,mc) - running, (eta+v+1)*max(1,bs) - (accepted+running)), from the numbers of the decision
// itself. The greatest staleness is measured; above eta it is a violation only where the scenario enforces the bound.
//
// After a recovery to version r the r*max(1,bs) groups that made r count as accepted, so that the capacity is that of a
// fresh start; the formula alone would allow everything that a count from zero allows.
// Source: spec/transfer.md 11.3.
#pragma once
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class StalenessJudge final : public JudgeOf<StalenessJudge> {
 public:
  explicit StalenessJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "staleness"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void measure(std::vector<Measure>& out) const override;

 private:
  void on_admitted(const port::TraceEvent& event, const port::Admitted& admitted, Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  NodeId admits_;
  Version restored_ = 0;  // What training began with, or went back to.
  std::uint64_t restored_seq_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t above_bound_ = 0;
  std::uint64_t greatest_ = 0;
};

// May be negative. Saturates where 64 bits do not hold it. Source: INV-STALE-HEAD.
std::int64_t admission_capacity(const port::Admitted& numbers);

}  // namespace areal::sim
