// What the compute engine of one rank does, with the small live model: one operation in, its result out.
//
// The same arithmetic in a simulated room and in a real process; when an operation runs, and for how long, is up to
// whoever calls this. Copyable values; not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "engine/node/room_plan.h"
#include "engine/node/tiny_replica.h"
#include "engine/node/tiny_trainer.h"
#include "engine/port/types.h"

namespace areal::node {

// The learning rate of the step that makes `version`. The schedule moves once a training step, whether the optimizer's
// was skipped or not.
double learning_rate_of(const RoomPlan& room, Version version);

// One checkpoint slot of one training rank.
struct TinyCheckpoint {
  Version version = 0;
  std::vector<std::uint64_t> words;  // TinyTrainer::save().
  AREAL_FIELDS(version, words)
};
using TinyCheckpoints = std::array<TinyCheckpoint, 2>;

class TinyTrainRank {
 public:
  TinyTrainRank(TinyShapePtr shape, std::uint32_t train_rank) : rank_(train_rank), trainer_(std::move(shape), rank_) {}

  // `cut_short`: it fails before it has any effect. Checkpoints are read from and written to `slots`.
  port::ComputeDone work(const RoomPlan& room, const port::StartCompute& asked, bool cut_short, TinyCheckpoints& slots);

  [[nodiscard]] const TinyTrainer& trainer() const { return trainer_; }
  TinyTrainer& trainer() { return trainer_; }
  // What was packed last.
  [[nodiscard]] const Packed& packed() const { return packed_; }
  // What it sent when its receivers last acknowledged, kept to count changes that a mask misses; nothing that sends
  // looks at it. Empty before that, and with deltas off.
  [[nodiscard]] std::span<const std::uint32_t> synced() const { return synced_; }

  void save(StateWriter& writer) const;

 private:
  void train(const RoomPlan& room, const port::StartCompute& asked, port::ComputeDone& done);
  void find_changes(const port::StartCompute& asked, bool cut_short, port::ComputeDone& done);
  void checkpoint(const port::StartCompute& asked, TinyCheckpoint& slot, port::ComputeDone& done);
  [[nodiscard]] std::uint64_t missed() const;

  std::uint32_t rank_ = 0;
  TinyTrainer trainer_;
  Packed packed_;
  std::vector<std::uint32_t> synced_;
};

class TinyEngineRank {
 public:
  explicit TinyEngineRank(TinyReplica replica) : replica_(std::move(replica)) {}

  // `cut_short`: an apply fails half-way and leaves mixed weights; everything else fails before it has any effect.
  port::ComputeDone work(const RoomPlan& room, const port::StartCompute& asked, bool cut_short);

  // Staging is new and holds nothing.
  void clear_staging();
  void count_landed(std::uint64_t bytes) { landed_bytes_ += bytes; }

  [[nodiscard]] const TinyReplica& replica() const { return replica_; }
  TinyReplica& replica() { return replica_; }
  // Of the weights it holds, as far as it knows: of none before it loaded.
  [[nodiscard]] const Digest128& held() const { return held_; }
  // Of what is in staging.
  [[nodiscard]] std::uint64_t landed_bytes() const { return landed_bytes_; }

  void save(StateWriter& writer) const;

 private:
  TinyReplica replica_;
  Digest128 held_;
  std::uint64_t landed_bytes_ = 0;
};

}  // namespace areal::node
