// The life of the pair at its gateway: INV-PAIR-UNIQUE, -RESERVE-FIRST, -VERSION and -SERIAL.
//
// The arrows are those of the pair state machine; saying the same state again is no move. A gateway that restarts
// begins anew: what the one before had open is forgotten.
//
// A recovery of training begins a new history at an earlier version: from there versions are published again, also with
// other bytes, but never twice within one history.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class PairJudge final : public JudgeOf<PairJudge> {
 public:
  explicit PairJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "pair"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Key {
    std::uint64_t history = 0;
    Epoch epoch = 0;
    Version version = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Published {
    std::uint64_t seq = 0;
    Digest128 exported;  // Sum of what senders exported for it; zero if nobody said.
  };
  void on_pair(const port::TraceEvent& event, const port::PairChanged& pair, Violations& out);
  void on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out);
  void on_started(const port::TraceEvent& event, const port::UpdateStarted& update, Violations& out);
  void on_exported(const port::Exported& exported);
  void report(const port::TraceEvent& event, InvariantId invariant, Version version, std::uint64_t related,
              const std::string& why, Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  NodeId gateway_;
  port::PairState state_ = port::PairState::kAbsent;
  bool known_ = true;  // False after a restart, until the new gateway says its state.
  Epoch epoch_ = 0;    // The greatest that was reserved.
  std::uint64_t state_seq_ = 0;
  std::uint64_t open_update_ = 0;     // seq of the UpdateStarted that has not ended; 0 if none is.
  std::uint64_t history_ = 0;         // How often training began anew.
  std::uint64_t update_history_ = 0;  // At the start of the update that is open or was last.
  Version least_ = 1;                 // That may be published next in this history.
  std::uint64_t last_seq_ = 0;
  Flat<Key, Published> published_;
  port::Exported export_key_;
  DigestSum exported_;
};

}  // namespace areal::sim
