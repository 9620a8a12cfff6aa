// INV-GW-ONCE: an update reaches a rank's collectives at most once for each (epoch, version, attempt).
#pragma once
#include "sim/check/flat.h"
#include "sim/check/judge.h"

namespace areal::sim {

class OnceJudge final : public JudgeOf<OnceJudge> {
 public:
  explicit OnceJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "once"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Entry {
    Epoch epoch = 0;
    Version version = 0;
    Attempt attempt = 0;
    NodeId node;
    auto operator<=>(const Entry&) const = default;
  };
  SetupPtr setup_;
  Flat<Entry, std::uint64_t> entered_;  // seq. Old updates are dropped.
  Entry newest_;
};

}  // namespace areal::sim
