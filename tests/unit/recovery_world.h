// A training loop with real training ranks, and everything else as small honest stand-ins, in one queue of events.
//
// Events come in the order in which they were caused; a timer fires when nothing else is left. A rank can be killed
// before any event: its process is gone with its weights, its checkpoints stay; a guard tells the loop, and starts a
// new process once the loop knows. A group never notices a death. Not thread-safe.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "engine/proto/train_loop.h"
#include "engine/proto/train_rank.h"

namespace areal::test {

class RecoveryWorld {
 public:
  static constexpr std::uint32_t kRanks = 3;

  struct Published {
    Epoch training_epoch = 0;
    Version version = 0;
    Digest128 bytes;
    bool operator==(const Published&) const = default;
  };

  explicit RecoveryWorld(const proto::TrainLoopOptions& options) : loop_(options, cluster()) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) start_rank(rank);
    send(kLoop, kLoopSlot, port::Started{1, 0, 1});
  }

  static proto::ClusterMap cluster() {
    proto::ClusterMap map;
    map.trainers = {{10}, {11}, {12}};
    map.data_heads = {0};
    map.engine_ranks = {{20}, {21}};
    map.engines = 2;
    map.engine_world = 1;
    map.gateway = {3};
    map.controller = kLoop;
    map.router = {4};
    map.guards = {{5}};
    return map;
  }

  // One event; false if there is none left.
  bool step();
  void run() {
    for (int i = 0; i < 20'000 && !ended.has_value(); ++i) {
      if (!step()) return;
    }
  }
  // `at_once`: the loop learns of it next, not after all that is on its way.
  void kill(std::uint32_t rank, bool at_once = false);

  [[nodiscard]] const proto::TrainLoop& loop() const { return loop_; }
  [[nodiscard]] port::LoopPhase phase() const { return phases.empty() ? port::LoopPhase::kDone : phases.back(); }
  // The weights that a rank holds.
  [[nodiscard]] Version held(std::uint32_t rank) const { return ranks_[rank].version; }
  [[nodiscard]] Digest128 bytes(std::uint32_t rank) const { return ranks_[rank].bytes; }
  [[nodiscard]] std::size_t ports_kept() const { return ports_.size(); }
  // Changes what is on a rank's checkpoint slots.
  void spoil(std::uint32_t rank) {
    for (Saved& saved : ranks_[rank].saved) saved.bytes.low ^= 1;
  }

  std::vector<port::LoopPhase> phases;
  std::vector<Published> published;  // Every update that ended well, in order.
  std::vector<port::TrainingWorldChanged> worlds;
  std::vector<port::CheckpointInfo> infos;
  std::vector<proto::ResetPool> resets;
  std::vector<port::StepTrained> steps;
  std::optional<port::RunEnded> ended;

 private:
  static constexpr NodeId kLoop{1};
  static constexpr SlotId kLoopSlot = proto::kTrainLoopSlot;

  struct Saved {
    Version version = 0;
    Digest128 bytes;
  };
  struct Rank {
    Incarnation incarnation = 0;
    bool alive = false;
    std::optional<proto::TrainRank> protocol;
    Version version = 0;
    Digest128 bytes;
    std::array<Saved, 2> saved;
  };
  struct Event {
    NodeId to;
    Incarnation incarnation = 0;  // Of a rank; 0: any.
    SlotId slot;
    proto::Input input;
    std::optional<port::StartCompute> compute;  // Done when the event comes.
  };
  struct Timer {
    NodeId node;
    Incarnation incarnation = 0;
    TimerId id;
    Duration due{};
  };
  struct Group {
    GroupId id;
    bool aborted = false;
    std::vector<std::uint32_t> members;
    std::vector<port::PostBatch> batches;  // The same place in `posters`.
    std::vector<std::uint32_t> posters;
  };

  void send(NodeId to, SlotId slot, const proto::Input& input) {
    const Incarnation incarnation = is_rank(to) ? rank_of(to).incarnation : 0;
    queue_.push_back({to, incarnation, slot, input, {}});
  }
  static bool is_rank(NodeId node) { return node.value >= 10 && node.value < 10 + kRanks; }
  Rank& rank_of(NodeId node) { return ranks_[node.value - 10]; }
  void start_rank(std::uint32_t rank);
  void carry_out(NodeId from, const proto::Outbox& out);
  void message(NodeId from, const port::Send& sent);
  template <RecordType T>
  void reply(const port::Send& sent, const T& body) {
    send(kLoop, kLoopSlot,
         port::MessageIn{sent.to, 1, sent.to_slot, port::MessageKind::kReply, sent.request, to_record(body)});
  }
  void told(const port::Tell& tell);
  template <RecordType T>
  void answer_tell(SlotId from, const T& body) {
    send(kLoop, kLoopSlot, port::TellIn{from, to_record(body)});
  }
  proto::UpdateReply update(const proto::UpdateRequest& asked);
  void set_version(const proto::SetVersion& set);
  port::ComputeDone compute(std::uint32_t rank, const port::StartCompute& asked);
  void join(std::uint32_t rank, const port::JoinGroup& asked);
  void post(std::uint32_t rank, const port::PostBatch& posted);
  void abort(std::uint32_t rank, GroupId id);
  Group& group(GroupId id);
  void put(const port::StorePut& put);
  void get(const port::StoreGet& get);

  proto::TrainLoop loop_;
  std::array<Rank, kRanks> ranks_;
  std::deque<Event> queue_;
  std::vector<Timer> timers_;
  Duration now_{};
  std::vector<Group> groups_;
  std::vector<std::pair<std::uint64_t, Digest128>> store_;
  std::vector<proto::WorldPort> ports_;
  std::vector<NodeId> untold_;  // Dead ranks that the loop was told of, by request.
  std::uint64_t guard_requests_ = 0;
  bool gate_paused_ = false;
  bool pool_paused_ = true;
  Version pool_version_ = 0;
  TrainBatchId last_batch_;
  std::array<Published, 3> announced_;  // To engine 0, engine 1 and the router.
};

}  // namespace areal::test
