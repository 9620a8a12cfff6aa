// INV-14, INV-RT-RECEIPT and INV-RT-LEAK: shards of a training batch are dropped everywhere, and counted truly.
//
// A holder of a batch is who fetched shards for it, or stored shards that were fetched for it. What a process held is
// gone when it dies, and what was fetched for a batch that a recovery of training voided need not be dropped with a
// receipt.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class StoreJudge final : public JudgeOf<StoreJudge> {
 public:
  explicit StoreJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "store"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void at_end(bool finished, Violations& out) override;
  void measure(std::vector<Measure>& out) const override;

 private:
  using Place = std::pair<TrainBatchId, NodeId>;
  struct Holding {
    std::uint64_t fetched = 0;  // Shards this node got for the batch.
    std::uint64_t stored = 0;   // Shards it made that somebody got for the batch.
    std::uint64_t dropped = 0;
    bool clear = false;       // It said that nothing is left, and got nothing since.
    bool incomplete = false;  // It restarted: its counts say nothing.
    std::uint64_t seq = 0;    // Of what it last got or said.
  };
  void forget(NodeId node);
  void forget_batches();
  void on_stored(const port::TraceEvent& event, ShardId shard);
  void on_fetched(const port::TraceEvent& event, const port::ShardFetched& fetched);
  void on_dropped(const port::TraceEvent& event, const port::ShardsDropped& dropped);
  void on_receipt(const port::TraceEvent& event, const port::Receipt& receipt, Violations& out);
  void judge_balance(const port::TraceEvent& event, const port::Receipt& receipt, Violations& out) const;
  void judge_leaks(const port::TraceEvent& event, std::uint64_t step, Violations& out) const;

  struct Stored {
    NodeId node;
    TrainBatchId counted;  // The batch for which its maker's holding counts it.
  };
  SetupPtr setup_;
  Incarnations incarnations_;
  Flat<ShardId, Stored> shards_;
  Flat<Place, Holding> holdings_;
  std::uint64_t stored_ = 0;
  std::uint64_t drained_ = 0;  // Dropped by who stored them.
  std::uint64_t lost_ = 0;     // With a process that died.
};

}  // namespace areal::sim
