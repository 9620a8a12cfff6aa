// INV-PLAN-COVER, INV-PLAN-SYM and INV-PLAN-RANGE, judged when a plan is used.
//
// A wrong plan that is refused in time breaks nothing. So what ranks say of their plans is kept until the pair of that
// epoch is connected or a rank enters a collective of it.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/judge.h"

namespace areal::sim {

class PlanJudge final : public JudgeOf<PlanJudge> {
 public:
  explicit PlanJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "plan"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Built {
    std::uint64_t seq = 0;
    port::PlanBuilt plan;
  };
  struct Side {
    std::uint64_t seq = 0;  // 0: nothing said.
    NodeId node;
    port::PlanPeer peer;
  };
  struct Between {
    Side sender;
    Side receiver;
    [[nodiscard]] bool both() const { return sender.seq != 0 && receiver.seq != 0; }
    [[nodiscard]] bool differ() const;
  };
  using RankPair = std::pair<std::uint32_t, std::uint32_t>;  // Sender, receiver.

  void start_epoch(Epoch epoch);
  void judge_use(const port::TraceEvent& event, Epoch epoch, Violations& out);
  void judge_ranges(const port::TraceEvent& event, Violations& out) const;
  void judge_cover(const port::TraceEvent& event, Violations& out) const;
  void judge_symmetry(const port::TraceEvent& event, Violations& out) const;
  void report(const port::TraceEvent& event, InvariantId invariant, NodeId node, std::uint64_t seq,
              const std::string& why, Violations& out) const;

  SetupPtr setup_;
  Epoch epoch_ = 0;
  bool changed_ = false;  // Something was said since the last look.
  Flat<NodeId, Built> built_;
  Flat<RankPair, Between> peers_;
};

}  // namespace areal::sim
