// INV-5 and INV-DELTA-COMMIT: a sender's tracker moves only when an update reached its final barrier, and counts right.
//
// A delta moves base and count of deltas by one each, a full update sets the base to its version and the count to zero.
// The barrier is the one that this rank posted on the control group after it entered the attempt. What a tracker votes
// with is where it last moved. A rank that restarts, or a training world that changed, has no base.
#pragma once
#include "sim/check/attempt_key.h"
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class TrackerJudge final : public JudgeOf<TrackerJudge> {
 public:
  explicit TrackerJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "tracker"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Tracker {
    AttemptKey entered;
    BatchId barrier;   // Posted after entering; 0: none.
    bool met = false;  // It completed.
    bool seeded = false;
    Version base = 0;
    std::uint64_t since = 0;
    std::uint64_t seq = 0;  // Of the last move.
    AttemptKey early;       // An attempt for which it moved before the barrier; all 0: none.
  };
  void on_moved(const port::TraceEvent& event, const port::TrackerMoved& moved, Violations& out);
  void on_voted(const port::TraceEvent& event, const port::DeltaVoted& voted, Violations& out) const;
  void on_ended(const port::TraceEvent& event, const port::UpdateEnded& ended, Violations& out) const;
  void judge_move(const port::TraceEvent& event, const port::TrackerMoved& moved, const Tracker& tracker,
                  Violations& out) const;
  void report(const port::TraceEvent& event, InvariantId invariant, NodeId node, Version version, std::uint64_t related,
              const std::string& why, Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  Flat<NodeId, Tracker> trackers_;
};

}  // namespace areal::sim
