// One training rank's work: fetches the shards it is assigned, makes a step when it has them all, drops them when told.
//
// A step is made once: asked again it is answered again, and a version that does not follow the one made last is
// refused. A rank that restarted has made none; whether its weights fit the step is the compute engine's to say
// (kMismatch). Shards of a batch that was dropped never come back: the fetches under way are forgotten with it.
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
#include "engine/proto/waits.h"

namespace areal::proto {

struct TrainRankOptions {
  std::uint32_t rank = 0;                    // train_rank.
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

// The step that is waited for or made, and the request to answer.
struct RunningStep {
  NodeId from;
  RequestId request;
  std::uint64_t step = 0;
  Version version = 0;
  TrainBatchId batch;
  std::uint32_t shards = 0;
  std::uint64_t seed = 0;
  OpId op;  // 0 while shards are missing.
  AREAL_FIELDS(from, request, step, version, batch, shards, seed, op)
};

class TrainRank {
 public:
  static constexpr std::string_view kName = "train_rank";

  TrainRank(TrainRankOptions options, ClusterMap cluster);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] const Table<HeldKey, HeldShard>& held() const { return held_; }

  AREAL_FIELDS(held_, running_, version_, seed_, published_, dropped_, last_op_, calls_, loop_callee_, pool_callee_,
               drain_callee_)

 private:
  void on_message(const port::MessageIn& message, Outbox& out);
  void on_compute(const port::ComputeDone& done, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);
  void on_shard(const PendingRequest& asked, const Record& body, Outbox& out);

  void on(const port::MessageIn& message, const AssignShard& assign, Outbox& out);
  void on(const port::MessageIn& message, const TrainStep& train, Outbox& out);
  void on(const port::MessageIn& message, const SetVersion& set, Outbox& out);
  void on(const port::MessageIn& message, const DropBatch& drop, Outbox& out);
  void on(const port::MessageIn& message, const QueryBatch& query, Outbox& out);

  void compute_if_ready(Outbox& out);
  void end_step(Outcome outcome, Outbox& out);
  [[nodiscard]] std::uint64_t count_of(TrainBatchId batch) const;
  [[nodiscard]] bool is_data_head() const;
  // Protocols of one node number their requests on their own. Null: nobody who asks here.
  Callee* callee_of(const port::MessageIn& message);

  // Set at construction; not state.
  TrainRankOptions options_;
  ClusterMap cluster_;

  Table<HeldKey, HeldShard> held_;
  std::optional<RunningStep> running_;
  Version version_ = 0;     // Made by this process; 0: none.
  std::uint64_t seed_ = 0;  // Of that version.
  Version published_ = 0;
  TrainBatchId dropped_;  // The newest one.
  std::uint64_t last_op_ = 0;
  Caller calls_;
  Callee loop_callee_;
  Callee pool_callee_;
  Callee drain_callee_;
};

}  // namespace areal::proto
