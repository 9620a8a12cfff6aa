// INV-LOOP-ORDER, INV-LOOP-MONO and INV-LOOP-PAUSED: the training loop keeps its phases, its versions and its pause.
//
// Phases of a step may be repeated, and a failed pause may be tried again from pause_rollout; otherwise they only go
// forward. Where generation pauses around updates, an update begins only when every engine has paused, none continues
// before it ended, and nothing is admitted until the step resumes.
//
// A repair interrupts collecting and nothing else: it pauses, updates and announces in this order, comes back to the
// same collecting, and is held to the same pause.
//
// A recovery interrupts any phase. TrainingWorldChanged says to which version and step it leads; from there the loop
// moves the restored version to the engines or goes on collecting, and versions grow from the restored one again. A
// rank that enters an update's collectives while an engine still generates did not wait for what the others wait for:
// INV-6.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class LoopJudge final : public JudgeOf<LoopJudge> {
 public:
  explicit LoopJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "loop"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Trained {
    std::uint64_t step = 0;
    bool any = false;
  };
  struct Pause {
    bool on = false;
    bool known = false;  // False from a restart of the server until it says so again.
    std::uint64_t seq = 0;
  };
  void forget(NodeId node);
  void on_phase(const port::TraceEvent& event, const port::PhaseEntered& phase, Violations& out);
  void on_version(const port::TraceEvent& event, const port::VersionSet& set, Violations& out);
  void on_pause(const port::TraceEvent& event, const port::PauseChanged& changed, Violations& out);
  void on_admitted(const port::TraceEvent& event, const port::Admitted& admitted, Violations& out) const;
  void judge_trained(const port::TraceEvent& event, const port::PhaseEntered& phase, Violations& out) const;
  void judge_paused(const port::TraceEvent& event, const port::PhaseEntered& phase, Violations& out) const;
  void on_entered(const port::TraceEvent& event, const port::CollectiveEntered& entered, Violations& out) const;
  void on_world(const port::TrainingWorldChanged& world);
  // Whether a phase of another step may be next.
  [[nodiscard]] bool may_move_to(std::uint64_t step) const;
  [[nodiscard]] Violation found_at(const port::TraceEvent& event, InvariantId invariant, const std::string& why) const;
  [[nodiscard]] bool updates() const;
  // Whether `next` may follow the present phase within one step.
  [[nodiscard]] bool may_follow(port::LoopPhase next) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  NodeId controller_;
  bool begun_ = false;
  std::uint64_t step_ = 0;
  port::LoopPhase phase_ = port::LoopPhase::kCollect;
  std::uint64_t phase_seq_ = 0;
  Version published_ = 0;  // The greatest since training last went back.
  bool restored_ = false;  // Nothing was collected since the last recovery.
  Version restored_version_ = 0;
  std::uint64_t restored_step_ = 0;                   // That comes next.
  Flat<std::pair<NodeId, port::Role>, Version> set_;  // The last one set.
  Flat<NodeId, Trained> trained_;
  Flat<EngineId, Pause> pauses_;
};

}  // namespace areal::sim
