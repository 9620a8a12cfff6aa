// The rollout pool: admits sample groups under the staleness bound, gets their samples made, and hands out batches.
//
// A sample is routed, sent to an engine, and asked for again until its tokens end or its budget is used: an abort keeps
// what was made, a failure is asked for elsewhere. The label of a segment is the version that the engine says it served
// it with; the version pinned at dispatch is only a lower bound. While paused, nothing is sent to the router or an
// engine, not even again; what is under way goes on. A batch takes the groups that became ready first.
//
// When training goes on from an earlier version, all that no training step will use is void: groups under work end as
// rejected, shards of finished ones are named to the drain once the store has confirmed them, late answers are refused,
// and the counters are those of a run that made the version without a loss.
//
// Every group that is admitted ends as accepted or rejected, once. Groups under work are bounded by max_concurrent,
// groups in all by `groups`: at that limit no more are admitted until a batch is taken.
// One value of the controller's loop; not thread-safe. Formulas: staleness.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/fifo.h"
#include "engine/base/table.h"
#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/sample_task.h"
#include "engine/proto/staleness.h"
#include "engine/proto/waits.h"

namespace areal::proto {

struct RolloutPoolOptions {
  StalenessLimits limits{64, 8, 0};
  std::uint32_t samples = 4;            // Of one group; 0 counts as 1.
  std::uint64_t max_new_tokens = 2048;  // Of one sample; 0 counts as 1.
  std::size_t groups = 8192;            // Admitted and not yet in a batch.
  std::uint64_t token_bytes = 16;       // Of a shard, for each token.
  Duration route_retry{1'000'000'000};  // Before samples that no engine could take are routed again; doubles.
  Duration longest_route_retry{64'000'000'000};
  Duration generate_timeout{60'000'000'000};  // Before a generation is asked for again; longer than most take.
  Duration timeout{10'000'000'000};           // Before any other request is asked again.
  std::uint32_t tries = 30;                   // Of one request; then it is asked for anew.
};

class RolloutPool {
 public:
  static constexpr std::string_view kName = "rollout_pool";

  RolloutPool(const RolloutPoolOptions& options, ClusterMap cluster, RecoveredCount recovered = as_if_never_lost);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] const StalenessManager& staleness() const { return staleness_; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] const Table<SampleId, SampleTask>& samples() const { return samples_; }
  [[nodiscard]] const Table<SampleGroupId, SampleGroup>& groups() const { return groups_; }

  AREAL_FIELDS(begun_, knows_version_, paused_, retry_armed_, refused_rounds_, last_group_, staleness_, samples_,
               groups_, ready_, wanted_, resetting_, late_, routes_, generates_, shards_, reports_)

 private:
  void on_message(const port::MessageIn& message, Outbox& out);
  void on_tell(const port::TellIn& tell, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);
  void on_version(Version version, Outbox& out);
  void pause(Outbox& out);
  void resume(Outbox& out);

  // Samples (rollout_pool.cpp).
  void admit(Outbox& out);
  void route(SampleId sample, Outbox& out);
  // Routes it later: with the next retry, or on resume.
  void hold(SampleId sample, Outbox& out);
  void route_held(Outbox& out);
  [[nodiscard]] Duration retry_delay() const;
  void on_routed(SampleId sample, const RouteReply& reply, Outbox& out);
  void on_generated(const port::MessageIn& message, SampleId sample, const GenerateReply& reply, Outbox& out);
  void on_report(const port::MessageIn& message, const SegmentReport& report, Outbox& out);
  void store(SampleId sample, const GenerateReply& segment, Outbox& out);
  [[nodiscard]] std::uint64_t budget(const SampleTask& task) const {
    return options_.max_new_tokens - task.record.tokens;
  }

  // Groups and batches (rollout_batch.cpp).
  void finish(SampleId sample, Outbox& out);
  void on_scored(const port::ComputeDone& done, Outbox& out);
  void put_shard(SampleGroupId group, Outbox& out);
  void on_shard_answer(const PendingRequest& request, bool acknowledged, Outbox& out);
  void on_want(const WantBatch& want, Outbox& out);
  void take_batch(Outbox& out);
  void assign_all(Outbox& out);
  void say_ready(Outbox& out) const;
  [[nodiscard]] TokenRecord record_of(SampleGroupId group) const;

  // Going on from an earlier version (rollout_reset.cpp).
  void on_reset(const ResetPool& reset, Outbox& out);
  void reject_unfinished(Outbox& out);
  void drop_stored(Outbox& out);
  void end_reset_if_stored(Outbox& out);

  // Set at construction; not state.
  RolloutPoolOptions options_;
  ClusterMap cluster_;
  RecoveredCount recovered_;

  bool begun_ = false;  // The training loop has said something.
  bool knows_version_ = false;
  bool paused_ = false;
  bool retry_armed_ = false;
  std::uint32_t refused_rounds_ = 0;  // Retries since a sample was last routed.
  SampleGroupId last_group_;
  StalenessManager staleness_;
  Table<SampleId, SampleTask> samples_;  // Of groups that are not finished.
  Table<SampleGroupId, SampleGroup> groups_;
  Fifo<SampleGroupId> ready_;  // In the order in which they became ready; at most groups_.limit().
  WantedBatch wanted_;
  std::optional<ResetPool> resetting_;  // Waits for the store to confirm what it was given.
  Fifo<TimerId> late_;                  // Of requests to ask again on resume; at most one a request.
  // Whom they ask are different nodes: their request ids may be equal.
  Caller routes_;
  Caller generates_;
  Caller shards_;
  Callee reports_;
};

}  // namespace areal::proto
