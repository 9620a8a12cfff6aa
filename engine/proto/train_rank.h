// One training rank's work: joins the training world, fetches its shards, makes steps with the others, keeps
// checkpoints.
//
// A step waits for its shards, computes gradients, reduces their norm with all ranks, and then steps the optimizer, or
// skips it on all ranks alike if some gradient was not finite. It is made once: asked again it is answered again, and
// a version that does not follow the one held is refused. Shards of a batch that was dropped never come back.
//
// Ranks meet anew under every training epoch (spec/transfer.md 11.3): whatever ran under an earlier one is dropped, its
// group is aborted, and the weights are read back from the checkpoint that the epoch begins with. A group never
// notices that a member died: a step that waits for a dead one waits until the next training epoch.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/table.h"
#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/training_group.h"
#include "engine/proto/waits.h"

namespace areal::proto {

struct TrainRankOptions {
  std::uint32_t rank = 0;                    // train_rank.
  std::uint32_t minibatches = 1;             // Optimizer steps of one training step.
  Duration shards_timeout{600'000'000'000};  // That a step waits for its shards, then it fails.
  std::size_t shard_limit = 65'536;          // An assignment beyond it is refused.
  CallerOptions calls{};                     // To the store.
};

struct HeldKey {
  TrainBatchId batch;
  ShardId shard;
  constexpr auto operator<=>(const HeldKey&) const = default;
  AREAL_FIELDS(batch, shard)
};

enum class HoldState : std::uint8_t { kFetching, kHeld, kMissing };

struct HeldShard {
  HoldState state = HoldState::kFetching;
  std::uint64_t bytes = 0;
  Digest128 digest;
  AREAL_FIELDS(state, bytes, digest)
};

enum class StepStage : std::uint8_t { kShards, kGradients, kReducing, kStepping };
constexpr std::array<std::string_view, 4> enum_names(StepStage /*tag*/) {
  return {"shards of the batch", "gradients", "norm of gradients", "train step"};
}

// The step that is waited for or made, and the request to answer.
struct RunningStep {
  NodeId from;
  RequestId request;
  TrainStep asked;
  StepStage stage = StepStage::kShards;
  OpId op;
  BatchId batch;  // Of the reduction.
  AREAL_FIELDS(from, request, asked, stage, op, batch)
};

enum class JoinStage : std::uint8_t { kAborting, kRestoring, kMeeting };
constexpr std::array<std::string_view, 3> enum_names(JoinStage /*tag*/) {
  return {"abort of the training group", "weights to be read back", "training ranks to meet"};
}

// The training epoch that is being joined, and the request to answer.
struct RunningJoin {
  NodeId from;
  RequestId request;
  JoinTraining asked;
  JoinStage stage = JoinStage::kAborting;
  OpId op;
  AREAL_FIELDS(from, request, asked, stage, op)
};

// The checkpoint that is being written, and the request to answer.
struct RunningSave {
  NodeId from;
  RequestId request;
  SaveCheckpoint asked;
  OpId op;
  AREAL_FIELDS(from, request, asked, op)
};

class TrainRank {
 public:
  static constexpr std::string_view kName = "train_rank";

  TrainRank(TrainRankOptions options, ClusterMap cluster, ReducePolicy reduces = always_reduces);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  // Of the weights held, as far as this protocol moved them.
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] Epoch training_epoch() const { return training_epoch_; }
  [[nodiscard]] bool joined() const { return joined_; }
  [[nodiscard]] const Table<HeldKey, HeldShard>& held() const { return held_; }

  AREAL_FIELDS(held_, running_, version_, made_, seed_, dropped_, training_epoch_, joined_, group_, joining_,
               join_answer_, replaced_, saving_, saved_, last_op_, last_batch_, calls_, loop_callee_, pool_callee_,
               drain_callee_)

 private:
  // Inputs and shards (train_rank.cpp).
  void on_message(const port::MessageIn& message, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);
  void on_shard(const PendingRequest& asked, const Record& body, Outbox& out);
  void on(const port::MessageIn& message, const AssignShard& assign, Outbox& out);
  void on(const port::MessageIn& message, const DropBatch& drop, Outbox& out);
  void on(const port::MessageIn& message, const QueryBatch& query, Outbox& out);
  void on(const port::MessageIn& message, const SetVersion& set, Outbox& out);
  // Protocols of one node number their requests on their own. Null: nobody who asks here.
  Callee* callee_of(const port::MessageIn& message);
  [[nodiscard]] std::uint64_t count_of(TrainBatchId batch) const;
  [[nodiscard]] bool is_data_head() const;
  void check_invariants() const;

  // Steps (train_rank_step.cpp).
  void on(const port::MessageIn& message, const TrainStep& train, Outbox& out);
  void begin_if_ready(Outbox& out);
  void on_gradients(const port::ComputeDone& done, Outbox& out);
  void on_reduced(const port::BatchDone& done, Outbox& out);
  void make_step(std::uint64_t not_finite, Outbox& out);
  void on_stepped(const port::ComputeDone& done, Outbox& out);
  void end_step(Outcome outcome, Outbox& out);
  OpId start(port::ComputeKind what, Version version, std::uint64_t seed, std::uint64_t amount, Outbox& out);

  // Training world and checkpoints (train_rank_world.cpp).
  void on(const port::MessageIn& message, const JoinTraining& join, Outbox& out);
  void on(const port::MessageIn& message, const SaveCheckpoint& save, Outbox& out);
  void on(const port::MessageIn& message, const LeaveTraining& leave, Outbox& out);
  void on_compute(const port::ComputeDone& done, Outbox& out);
  void on_joined(const port::GroupJoined& joined, Outbox& out);
  void on_aborted(const port::GroupAborted& aborted, Outbox& out);
  void drop_work(Outbox& out);
  void restore(Outbox& out);
  void on_restored(const port::ComputeDone& done, Outbox& out);
  void meet(Outbox& out);
  void end_join(Outcome outcome, Outbox& out);
  void on_saved(const port::ComputeDone& done, Outbox& out);

  // Set at construction; not state.
  TrainRankOptions options_;
  ClusterMap cluster_;
  ReducePolicy reduces_;

  Table<HeldKey, HeldShard> held_;
  std::optional<RunningStep> running_;
  Version version_ = 0;
  bool made_ = false;         // By a step of this training epoch, ...
  std::uint64_t seed_ = 0;    // ... from this batch.
  TrainBatchId dropped_;      // The newest one.
  Epoch training_epoch_ = 0;  // The newest that was asked for.
  bool joined_ = false;
  Epoch group_ = 0;  // Of the group that was joined or is about to be, and is not aborted; 0: none.
  std::optional<RunningJoin> joining_;
  TrainingJoined join_answer_;
  bool replaced_ = false;  // The weights are not those that were loaded.
  std::optional<RunningSave> saving_;
  CheckpointSaved saved_;  // The last one that was written under this training epoch; version 0: none.
  std::uint64_t last_op_ = 0;
  std::uint64_t last_batch_ = 0;
  Caller calls_;
  Callee loop_callee_;
  Callee pool_callee_;
  Callee drain_callee_;
};

}  // namespace areal::proto
