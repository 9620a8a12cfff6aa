// Traces of updates with deltas on, built by hand: every attempt from the training step to its publication or failure.
//
// On the cluster of trace_builder.h; what the gateway, the senders and the receivers of a right run would say, in their
// order. Each part may be spoilt at one node. Two wire dtypes, two windows of two parameters, one replica group.
#pragma once
#include "sim/check/group_ids.h"
#include "tests/unit/trace_builder.h"

namespace areal::sim {

enum class Stops : std::uint8_t { kNever, kBeforeEntering, kAfterVotes, kAfterPayload };

struct DeltaSteps {
  Version version = 1;
  Attempt attempt = 1;
  port::UpdateMode mode = port::UpdateMode::kDelta;
  port::FullReason reason = port::FullReason::kNone;
  std::uint64_t optimizer_steps = 1;
  bool trains = true;
  Stops stops = Stops::kNever;
  std::uint32_t anchors = 1;  // Of a full update.

  // Nodes that do one thing wrong.
  NodeId skips_pass{};   // Leaves out the second wire dtype.
  NodeId runs_dense{};   // Also runs a dense pass.
  NodeId votes_other{};  // Comes to the other mode.
  NodeId miscounts{};    // Receives one element more than it was told.
  NodeId misses{};       // Leaves changed elements out.
  NodeId odd_reductions{};
  NodeId stops_windows{};  // Votes after the first window.
  NodeId hurries{};        // Hands a window on while reductions are pending.
  NodeId keeps_nothing{};  // Does not get its gradients back.
  NodeId moves_early{};    // Moves its tracker before the barrier.
  NodeId moves_twice{};    // Counts one delta as two.
  NodeId keeps_old{};      // Holds the bytes of the version before.
  NodeId votes_stale{};    // Votes with another base than its tracker has.
};

inline JudgeSetup make_delta_setup(std::uint32_t interval = 0) {
  JudgeSetup setup = make_setup();
  setup.delta = true;
  setup.anchor_interval = interval;
  return setup;
}

class DeltaTrace : public Trace {
 public:
  explicit DeltaTrace(std::uint32_t interval = 0) : Trace(make_delta_setup(interval)), interval_(interval) {
    start_cluster(*this);
    join();
  }

  void update(const DeltaSteps& steps) {
    steps_ = steps;
    if (steps.trains) train();
    pause(true);
    note(kGateway, port::PairChanged{epoch_, port::PairState::kUpdating, published_});
    note(kGateway, port::UpdateStarted{epoch_, steps.version, steps.attempt, steps.mode, steps.reason});
    if (steps.stops == Stops::kBeforeEntering) return fail();
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      note(NodeId{rank + 1}, port::CollectiveEntered{epoch_, steps.version, steps.attempt, rank});
    }
    for (const NodeId node : kTrain) note(node, port::GradientsChanged{0, false});
    vote();
    if (steps.stops == Stops::kAfterVotes) return fail();
    move_payload();
    if (steps.stops == Stops::kAfterPayload) return fail();
    finish();
    publish();
  }
  // The pair of the present epoch is given up and connected again.
  void reconnect() {
    using port::PairState;
    for (const PairState state : {PairState::kTearingDown, PairState::kAbsent}) {
      note(kGateway, port::PairChanged{epoch_, state, published_});
    }
    ++epoch_;
    for (const PairState state : {PairState::kReserved, PairState::kConnected}) {
      note(kGateway, port::PairChanged{epoch_, state, published_});
    }
    join();
  }
  void train() {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      note(kTrain[rank], port::StepTrained{steps_.version - 1, steps_.version, rank, {}, steps_.optimizer_steps});
    }
  }
  void train(Version version) {
    steps_.version = version;
    train();
  }
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  // Training goes on from an earlier version, under a new pair; trackers are empty.
  void recover(Epoch training_epoch, Version version) {
    note(kController, port::TrainingWorldChanged{training_epoch, version, version});
    base_ = since_ = 0;
    reconnect();
  }

 private:
  void join() {
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      const NodeId node{rank + 1};
      effect(node, port::JoinGroup{payload_group_of(epoch_), port::Backend::kNccl, rank, 6, 100});
      effect(node, port::JoinGroup{control_group_of(epoch_), port::Backend::kGloo, rank, 6, 100});
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      effect(kTrain[rank], port::JoinGroup{vote_group_of(epoch_), port::Backend::kGloo, rank, 2, 100});
      effect(kTrain[rank], port::JoinGroup{replicas(), port::Backend::kNccl, rank, 2, 100});
    }
  }
  [[nodiscard]] GroupId replicas() const { return {vote_group_of(epoch_).value + 1}; }
  [[nodiscard]] bool sends(NodeId node) const { return node.value >= kTrain[0].value; }

  void pause(bool on) {
    for (std::uint32_t engine = 0; engine < 2; ++engine) {
      note(kInfer[2 * engine], port::PauseChanged{EngineId{engine}, on, port::PauseMode::kAbortResubmit, 0});
    }
  }
  port::PostBatch batch(GroupId group, port::BatchKind kind) {
    port::PostBatch made;
    made.group = group;
    made.batch = BatchId{++last_batch_};
    made.kind = kind;
    made.tag = tag_;
    made.version = steps_.version;
    return made;
  }
  void done(NodeId node, const port::PostBatch& posted, std::uint64_t value = 0) {
    input(node, port::BatchDone{posted.group, posted.batch, port::Outcome::kOk, {}, value, 0});
  }
  // All of [first, last] post one batch of this kind and it completes.
  void meet(GroupId group, port::BatchKind kind, std::uint64_t first, std::uint64_t last) {
    ++tag_;
    std::vector<port::PostBatch> posted;
    for (std::uint64_t node = first; node <= last; ++node) {
      posted.push_back(batch(group, kind));
      effect(NodeId{node}, posted.back());
    }
    for (std::uint64_t node = first; node <= last; ++node) done(NodeId{node}, posted[node - first]);
  }

  void vote() {
    const bool full = steps_.mode == port::UpdateMode::kFull;
    meet(vote_group_of(epoch_), port::BatchKind::kMax, 5, 6);
    for (std::uint32_t window = 0; window < 2 && !full; ++window) {
      for (const NodeId node : kTrain) reconstruct(node, window);
    }
    meet(vote_group_of(epoch_), port::BatchKind::kMax, 5, 6);
    meet(control_group_of(epoch_), port::BatchKind::kMin, 1, 6);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const bool other = steps_.votes_other == kTrain[rank];
      const auto mode = full != other ? port::UpdateMode::kFull : port::UpdateMode::kDelta;
      const Version base = steps_.votes_stale == kTrain[rank] ? base_ + 1 : base_;
      note(kTrain[rank],
           port::DeltaVoted{epoch_, steps_.version, steps_.attempt, rank, steps_.reason, mode, base, since_});
    }
  }
  void reconstruct(NodeId node, std::uint32_t window) {
    if (window > 0 && steps_.stops_windows == node) return;
    tag_ = 1000 + window;
    port::PostBatch reduce = batch(replicas(), port::BatchKind::kReduce);
    reduce.part = window;
    reduce.elements = steps_.odd_reductions == node ? 3 : 4;
    effect(node, reduce);
    if (steps_.stops_windows != NodeId{} && window > 0) return;  // It waits for who does not come.
    const std::uint64_t pending = steps_.hurries == node ? 1 : 0;
    note(node, port::WindowCompared{epoch_, steps_.version, steps_.attempt, 0, window, 4, pending, 2, 5, false});
  }

  void pass(NodeId node, port::Round round, std::uint32_t part, std::uint64_t elements, std::uint64_t told) {
    const DType wire = part == 0 ? DType::kBf16 : DType::kF32;
    port::PostBatch posted =
        batch(payload_group_of(epoch_), sends(node) ? port::BatchKind::kSend : port::BatchKind::kReceive);
    posted.round = round;
    posted.part = part;
    posted.dtype = round == port::Round::kCounts ? DType::kI32 : wire;
    posted.elements = elements;
    const std::uint64_t index = round == port::Round::kData ? 4 : 0;
    posted.bytes = elements * (index + size_of(posted.dtype));
    effect(node, posted);
    done(node, posted, told);
  }
  void move_payload() {
    const bool full = steps_.mode == port::UpdateMode::kFull;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::uint64_t missed = steps_.misses == kTrain[rank] ? 3 : 0;
      if (!full) note(kTrain[rank], port::DeltaPacked{epoch_, steps_.version, steps_.attempt, rank, 10, missed});
      DigestSum sent;
      for (int engine = 0; engine < 2; ++engine) sent.add(weights_of(steps_.version, rank));
      note(kTrain[rank],
           port::Exported{epoch_, steps_.version, steps_.attempt, 4 + rank, full ? 100U : 10U, sent.total});
    }
    for (std::uint32_t part = 0; part < 2; ++part) {
      tag_ = 2000 + part;
      for (std::uint64_t i = 1; i <= 6; ++i) {
        const NodeId node{i};
        if (part == 1 && steps_.skips_pass == node) continue;
        const std::uint64_t share = sends(node) ? 2 : 1;  // Two send what four receive.
        if (full || steps_.runs_dense == node) pass(node, port::Round::kDense, part, 50 * share, 0);
        if (full) continue;
        pass(node, port::Round::kCounts, part, 4 * share, 5);
        pass(node, port::Round::kData, part, 5 * share + (steps_.miscounts == node ? 1 : 0), 0);
      }
    }
    if (steps_.moves_early != NodeId{}) move_tracker(steps_.moves_early);
    // Who left something out goes on, also if the others cannot follow.
    if (steps_.skips_pass != NodeId{}) {
      effect(steps_.skips_pass, batch(control_group_of(epoch_), port::BatchKind::kSum));
    }
  }

  void finish() {
    if (steps_.skips_pass == NodeId{}) meet(control_group_of(epoch_), port::BatchKind::kSum, 1, 6);
    for (std::uint32_t rank = 0; rank < 4; ++rank) apply(rank);
    meet(control_group_of(epoch_), port::BatchKind::kBarrier, 1, 6);
    for (const NodeId node : kTrain) {
      if (steps_.keeps_nothing != node) note(node, port::GradientsChanged{0, true});
    }
    for (const NodeId node : kTrain) {
      if (steps_.moves_early != node) move_tracker(node);
    }
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      note(kInfer[rank], port::WeightsState{EngineId{rank / 2}, rank % 2, port::ServeState::kServing, steps_.version,
                                            weights_of(steps_.version, rank % 2)});
    }
    since_ = steps_.mode == port::UpdateMode::kFull ? 0 : since_ + 1;
    base_ = steps_.version;
  }
  void apply(std::uint32_t rank) {
    const NodeId node = kInfer[rank];
    const EngineId engine{rank / 2};
    note(node, port::ApplyStarted{epoch_, steps_.version, steps_.attempt, rank, engine});
    port::StartCompute start;
    start.what = steps_.mode == port::UpdateMode::kFull ? port::ComputeKind::kApply : port::ComputeKind::kApplyDelta;
    start.version = steps_.version;
    start.epoch = epoch_;
    effect(node, start);
    port::ComputeDone done;
    done.what = start.what;
    input(node, done);
    done.what = port::ComputeKind::kFence;
    input(node, done);
    const Version held = steps_.keeps_old == node ? steps_.version - 1 : steps_.version;
    note(node, port::Applied{epoch_, steps_.version, steps_.attempt, rank, engine, 10, 10, weights_of(held, rank % 2)});
  }
  void move_tracker(NodeId node) {
    const bool full = steps_.mode == port::UpdateMode::kFull;
    const std::uint64_t by = steps_.moves_twice == node ? 2 : 1;
    note(node, port::TrackerMoved{0, epoch_, steps_.attempt, steps_.mode, steps_.version, full ? 0 : since_ + by,
                                  interval_, port::FullReason::kNone});
  }

  void publish() {
    const DeltaSteps& steps = steps_;
    published_ = steps.version;
    note(kGateway, port::UpdateEnded{epoch_, steps.version, steps.attempt, port::Outcome::kOk, {}});
    note(kGateway, port::VersionPublished{epoch_, steps.version, steps.attempt, steps.mode, steps.reason, 400});
    for (std::uint32_t i = 0; i < steps.anchors && steps.mode == port::UpdateMode::kFull; ++i) {
      note(kGateway, port::AnchorSet{epoch_, steps.version, steps.attempt, steps.reason});
    }
    note(kGateway, port::PairChanged{epoch_, port::PairState::kConnected, steps.version});
    pause(false);
  }
  void fail() {
    for (const NodeId node : kTrain) note(node, port::GradientsChanged{0, true});
    note(kGateway, port::UpdateEnded{epoch_, steps_.version, steps_.attempt, port::Outcome::kFailed, kInfer[0]});
    note(kGateway, port::PairChanged{epoch_, port::PairState::kBroken, published_});
    for (std::uint64_t node = 1; node <= 6; ++node) {
      for (const GroupId group : {payload_group_of(epoch_), control_group_of(epoch_)}) {
        effect(NodeId{node}, port::AbortGroup{group});
      }
    }
    reconnect();
  }

  std::uint32_t interval_;
  DeltaSteps steps_;
  Epoch epoch_ = 1;
  Version published_ = 0;
  Version base_ = 0;
  std::uint64_t since_ = 0;
  std::uint64_t last_batch_ = 0;
  std::uint64_t tag_ = 0;
};

inline DeltaSteps full_update(Version version, port::FullReason reason, Attempt attempt = 1) {
  DeltaSteps steps;
  steps.version = version;
  steps.attempt = attempt;
  steps.mode = port::UpdateMode::kFull;
  steps.reason = reason;
  return steps;
}

}  // namespace areal::sim
