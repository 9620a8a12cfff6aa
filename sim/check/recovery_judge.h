// INV-17, INV-REC-ATOMIC, INV-REC-VERSION and INV-REC-EPOCH: what is read back is what was written, and training goes
// on from there.
//
// A checkpoint is the ranks' parts in one slot and the info that names it; the info comes last and stays true. What was
// written before the trace began is unknown and not compared. A write of the info that nobody waited for any more,
// because a rank died, may have come to its end: it counts if it is read back and names a whole checkpoint that is
// newer. Not thread-safe.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class RecoveryJudge final : public JudgeOf<RecoveryJudge> {
 public:
  explicit RecoveryJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "recovery"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void measure(std::vector<Measure>& out) const override;

 private:
  struct Part {
    port::CheckpointRank said;
    std::uint64_t seq = 0;
  };
  struct Info {
    port::CheckpointInfo said;
    std::uint64_t seq = 0;  // 0: none.
  };
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // Slot, train rank.

  void on_rank(const port::TraceEvent& event, const port::CheckpointRank& part, Violations& out);
  void on_restored(const port::TraceEvent& event, const port::CheckpointRank& part, Violations& out) const;
  // Trainers whose part of the checkpoint that `info` names was not written.
  [[nodiscard]] std::string missing_parts(const port::CheckpointInfo& info) const;
  void on_info_read(const port::TraceEvent& event, const port::CheckpointInfo& info, Violations& out);
  void on_info(const port::TraceEvent& event, const port::CheckpointInfo& info, Violations& out);
  void on_world(const port::TraceEvent& event, const port::TrainingWorldChanged& world, Violations& out);
  void on_trained(const port::TraceEvent& event, const port::StepTrained& trained, Violations& out);
  void on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out) const;
  void report(const port::TraceEvent& event, InvariantId invariant, Version version, std::uint64_t related,
              const std::string& why, Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  Flat<Place, Part> parts_;  // Written last.
  Info info_;                // On stable storage.
  Info restored_;            // Read back since the training world last changed.
  port::TrainingWorldChanged world_;
  std::uint64_t world_seq_ = 0;  // 0: nobody said so yet.
  NodeId world_node_;
  std::uint64_t started_seq_ = 0;  // Of the last update's start.
  Version trained_ = 0;            // The newest that training made since, or began with.
  std::uint64_t recoveries_ = 0;
};

}  // namespace areal::sim
