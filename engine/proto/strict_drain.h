// Proves that a training batch's shards are nowhere any more: at their source first, then at every consumer.
//
// Per batch (spec/transfer.md 9.5): the source drops each shard in order; any failure there ends the drain with no
// consumer touched. Then all data heads drop the batch, and then all are asked what they still hold: a head that holds
// anything fails the drain and is named. Only then there is a receipt. A failed drain keeps its list, so that all of it
// can be asked for again. Shards of a batch that is being drained are refused: a fetch during a drain would undo it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/table.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"

namespace areal::proto {

struct StrictDrainOptions {
  std::size_t shard_limit = 65'536;  // Of all batches together; a further one is refused.
  CallerOptions calls{};
};

struct DrainKey {
  TrainBatchId batch;
  ShardId shard;
  constexpr auto operator<=>(const DrainKey&) const = default;
  AREAL_FIELDS(batch, shard)
};

enum class DrainPhase : std::uint8_t { kIdle, kSources, kConsumers, kStats };

class StrictDrain {
 public:
  static constexpr std::string_view kName = "strict_drain";

  StrictDrain(const StrictDrainOptions& options, ClusterMap cluster);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] DrainPhase phase() const { return phase_; }

  AREAL_FIELDS(phase_, batch_, client_, shards_, sourced_, holding_heads_, collected_, calls_)

 private:
  void on(const port::TellIn& told, const DrainShard& drain, Outbox& out);
  void on(const port::TellIn& told, const ClearBatch& clear, Outbox& out);
  void on_answer(const PendingRequest& asked, const Record& body, Outbox& out);

  void drop_next(Outbox& out);
  template <RecordType T>
  void ask_heads(DrainPhase phase, const T& body, Outbox& out);
  void end_phase_if_answered(Outbox& out);
  void succeed(Outbox& out);
  void fail(Outcome outcome, Outbox& out);
  void end(Outcome outcome, Outbox& out);

  // Set at construction; not state.
  ClusterMap cluster_;

  DrainPhase phase_ = DrainPhase::kIdle;
  TrainBatchId batch_;
  SlotId client_;
  std::vector<ShardId> shards_;      // Of the batch, each once.
  std::uint64_t sourced_ = 0;        // Of them the source has dropped so many.
  std::uint32_t holding_heads_ = 0;  // That still held something when asked.
  Table<DrainKey, bool> collected_;  // A set: the ids of all batches that are not drained.
  Caller calls_;
};

}  // namespace areal::proto
