// INV-ANCHOR-CAUSE and INV-DELTA-FAILFULL: with deltas on, an update is full exactly if it has to be.
//
// Derived for any run from what the trace records: the first update is full, and so is one after a failed attempt, a
// lost process or pair, a recovery, more than one optimizer step, or as many deltas as the anchor interval allows.
// Everything else is a delta, also if no step changed anything. Compared when an update is published; each full update
// sets one anchor, a delta sets none. A count that is wrong breaks INV-5 too.
#pragma once
#include <optional>

#include "sim/check/anchor_causes.h"
#include "sim/check/attempt_key.h"
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class AnchorJudge final : public JudgeOf<AnchorJudge> {
 public:
  explicit AnchorJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "anchor"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void at_end(bool finished, Violations& out) override;
  void measure(std::vector<Measure>& out) const override;

 private:
  // An update that ended well, while the gateway says what became of it.
  struct Ended {
    AttemptKey key;
    std::optional<port::UpdateMode> published;  // Nothing for a repair: that version was published before.
    port::FullReason reason = port::FullReason::kNone;
    std::uint32_t anchors = 0;
  };
  void on_gateway(const port::TraceEvent& event, Violations& out);
  void on_started(const port::UpdateStarted& started);
  void on_ended(const port::TraceEvent& event, const port::UpdateEnded& ended);
  void on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out);
  void on_anchor(const port::TraceEvent& event, const port::AnchorSet& anchor, Violations& out);
  void on_voted(const port::TraceEvent& event, const port::DeltaVoted& voted, Violations& out) const;
  void on_compute(const port::TraceEvent& event, const port::ComputeDone& done);
  void on_renewed(const port::TraceEvent& event, NodeId node);
  void settle(const port::TraceEvent& event, Violations& out);
  void judge(const port::TraceEvent& event, port::UpdateMode mode, port::FullReason reason, Version version,
             Violations& out) const;
  // All causes that the update under way has.
  [[nodiscard]] std::vector<CauseFact> derive() const;
  void report(const port::TraceEvent& event, InvariantId invariant, Version version, const std::string& why,
              const std::vector<CauseFact>& causes, Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  AnchorCauses causes_;
  AttemptKey open_;  // All 0: none.
  bool entered_ = false;
  std::optional<Ended> ended_;
  bool seeded_ = false;
  bool world_seen_ = false;
  std::uint64_t since_ = 0;                                      // Deltas since the last full update.
  Flat<NodeId, std::pair<std::uint64_t, std::uint64_t>> steps_;  // Of each trainer since the last update; last seq.
  std::uint64_t fulls_ = 0;
  std::uint64_t deltas_ = 0;
  port::TraceEvent last_;
};

}  // namespace areal::sim
