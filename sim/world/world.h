// A machine room under virtual time: nodes, links, groups, devices, hosts, a store, and what goes wrong with them.
//
// A World is a value: a copy goes on alone, and save() writes all of its state as words. It never looks at a clock or
// draws outside its named streams: a run is a function of (room, seed, decisions). Events happen in the order (time,
// number). Sinks are given with each call; the world holds no pointer into anything that changes.
//
// Not thread-safe.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/sorted_chunks.h"
#include "engine/base/table.h"
#include "engine/node/node.h"
#include "engine/node/tiny_rank.h"
#include "sim/fault/fault_plan.h"
#include "sim/fault/rule_hook.h"
#include "sim/kernel/decision.h"
#include "sim/kernel/event_queue.h"
#include "sim/world/room.h"
#include "sim/world/sim_device.h"
#include "sim/world/sim_group.h"
#include "sim/world/sim_host.h"
#include "sim/world/world_event.h"

namespace areal::sim {

// A wait of a protocol or of the room itself, with who waits.
struct RoomWait {
  NodeId from{};
  NodeId on{};
  std::string what;
};

class World {
 public:
  // Errors name the line of the scenario (a rule or fault that cannot be compiled).
  static Result<World> make(std::shared_ptr<const Room> room, std::uint64_t seed, Profile profile,
                            std::vector<config::RuleSpec> extra_rules);
  // The same with other protocols in the room's nodes: for tests of ports and of protocols that no room has.
  // REQUIRES: nodes[i].id() == i + 1, one for each node of the room.
  static Result<World> make_hosting(std::shared_ptr<const Room> room, std::uint64_t seed, Profile profile,
                                    std::vector<config::RuleSpec> extra_rules, std::vector<node::Node> nodes);

  // Starts the processes that nobody starts: guards, gateway, controller, router, store.
  void start(port::TraceSink& sink);
  // Lets the next event happen. REQUIRES: has_event().
  void step(port::TraceSink& sink);
  [[nodiscard]] bool has_event() const { return !queue_.empty(); }

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t events() const { return seq_; }
  // The training loop has said how the run ended.
  [[nodiscard]] std::optional<port::RunEnded> ended() const { return ended_; }
  // Stops all faults: from now on the room is healthy.
  void heal(port::TraceSink& sink);

  // Who waits for whom on what, at this moment.
  [[nodiscard]] std::vector<RoomWait> waits() const;
  // What should be gone at the end of a run and is not, in words; empty if nothing.
  [[nodiscard]] std::vector<std::string> leaks() const;

  [[nodiscard]] const Room& room() const { return *room_; }
  [[nodiscard]] const node::Node& node(NodeId id) const { return nodes_[id.value - 1]; }
  [[nodiscard]] const FaultPlan& faults() const { return faults_; }
  [[nodiscard]] const RuleHook& rules() const { return rules_; }
  [[nodiscard]] Decisions& decisions() { return decisions_; }
  // For white-box judges (shadow.h). REQUIRES: ranks of the room's worlds.
  [[nodiscard]] const node::TinyTrainer& trainer(std::uint32_t train_rank) const {
    return trainers_[train_rank].trainer();
  }
  [[nodiscard]] const node::TinyReplica& replica(std::uint32_t infer_rank) const {
    return replicas_[infer_rank].replica();
  }
  // What a trainer sent when its receivers last acknowledged; empty before that, and with deltas off.
  [[nodiscard]] std::span<const std::uint32_t> synced(std::uint32_t train_rank) const {
    return trainers_[train_rank].synced();
  }
  // Lets a chooser put back the event that is next (interleave.h). REQUIRES: has_event().
  EventQueue<WorldEvent>& queue() { return queue_; }

  // Protocols whose running digest is not that of their state, in words; empty unless a table was changed behind its
  // back.
  [[nodiscard]] std::vector<std::string> audit() const;

  // All state as words, for snapshots.
  void save(StateWriter& writer) const;

 private:
  friend class SimPorts;

  World() = default;

  // world.cpp
  void happen(const WorldEvent& event, port::TraceSink& sink);
  void deliver(const WorldEvent& event, port::TraceSink& sink);
  void start_process(NodeId node, std::uint16_t port, const node::Origin& origin, port::TraceSink& sink);
  void kill_process(NodeId node, port::TraceSink& sink);
  void act(const FaultAction& action, port::TraceSink& sink);
  void report_faults(port::TraceSink& sink);
  void after_event(const port::TraceEvent& event, port::TraceSink& sink);
  void process_up(const WorldEvent& event, port::TraceSink& sink);
  void fire_timer(const WorldEvent& event, port::TraceSink& sink);
  std::uint64_t post(Duration after, const WorldEvent& event) { return queue_.post(now_ + after, event); }
  void post_input(NodeId node, SlotId slot, const proto::Input& input, const node::Origin& origin, Duration after,
                  bool to_this_process = true);
  node::Node& node_of(NodeId id) { return nodes_[id.value - 1]; }

  // world_transport.cpp
  void send(NodeId from, SlotId from_slot, const port::Send& message, const node::Origin& origin,
            port::TraceSink& sink);
  Duration latency(NodeId from, NodeId to, port::TraceSink& sink);

  // world_groups.cpp
  void join(NodeId node, SlotId slot, const port::JoinGroup& asked, const node::Origin& origin);
  void post_batch(NodeId node, SlotId slot, const port::PostBatch& asked, const node::Origin& origin,
                  port::TraceSink& sink);
  void post_control(Group& group, GroupMember& member, std::size_t index);
  void post_payload(Group& group, GroupMember& member, std::size_t index, port::TraceSink& sink);
  [[nodiscard]] std::uint64_t pair_elements(const GroupMember& sender, const proto::PeerList& list,
                                            const GroupBatch& batch) const;
  [[nodiscard]] const node::PackedStream* stream_of(std::uint32_t sender, std::uint32_t receiver) const;
  void reduce_window(const Group& group, std::size_t index);
  [[nodiscard]] Duration reduce_time(const Group& group, std::size_t index) const;
  void start_pair(Group& group, GroupMember& sender, GroupMember& receiver, std::size_t index, port::TraceSink& sink);
  void land(const GroupMember& sender, const GroupMember& receiver, const GroupBatch& batch, port::TraceSink& sink);
  void end_payload(const Group& group, GroupMember& side, std::size_t index, Duration after);
  void list_group_waits(std::vector<RoomWait>& waits) const;
  void pair_moved(const WorldEvent& event, port::TraceSink& sink);
  void end_batch(const Group& group, GroupMember& member, std::size_t index, port::Outcome outcome, NodeId peer,
                 const Meeting& meeting, Duration after);
  void abort_group(NodeId node, SlotId slot, GroupId id, const node::Origin& origin);
  void leave_group(NodeId node, GroupId id);
  void member_died(NodeId node);
  void death_noticed(const WorldEvent& event);

  // world_compute.cpp: when an operation runs; world_work.cpp: what it does.
  void start_compute(NodeId node, SlotId slot, const port::StartCompute& asked, const node::Origin& origin);
  void stop_compute(NodeId node, OpId op);
  void freeze(NodeId node, bool frozen);
  void run_next(NodeId node);
  void compute_ends(const WorldEvent& event, port::TraceSink& sink);
  port::ComputeDone do_work(NodeId node, const port::StartCompute& asked, bool cut_short);
  [[nodiscard]] std::uint64_t window_bytes(const RoomNode& place, std::uint64_t window) const;
  void engine_lost_rank(EngineId engine);
  port::ComputeDone generated(NodeId node, const SimCompute& compute, port::Outcome outcome) const;
  [[nodiscard]] Duration duration_of(NodeId node, const port::StartCompute& asked) const;
  void begin_generation(NodeId node, SimCompute& compute);
  void weights_changed(EngineId engine);
  [[nodiscard]] std::uint64_t tokens_left(const SimCompute& compute) const;
  [[nodiscard]] std::uint64_t tokens_so_far(const SimCompute& compute) const;
  [[nodiscard]] Digest128 engine_digest(EngineId engine) const;

  // world_host.cpp
  void reserve(NodeId node, SlotId slot, const port::ReserveBuffer& asked, const node::Origin& origin,
               port::TraceSink& sink);
  void lease_port(NodeId node, SlotId slot, const port::LeasePort& asked, const node::Origin& origin,
                  port::TraceSink& sink);
  std::uint64_t pair_factor(NodeId sender, NodeId receiver, port::TraceSink& sink);
  void put_if(NodeId node, SlotId slot, const port::StorePut& asked, const node::Origin& origin);

  struct TimerKey {
    SlotId slot{};
    TimerId timer{};
    auto operator<=>(const TimerKey&) const = default;
    AREAL_FIELDS(slot, timer)
  };
  struct StoreValue {
    Digest128 value{};
    AREAL_FIELDS(value)
  };
  struct EngineState {
    bool broken = false;  // A rank died since the ranks last met: nothing can be generated.
    AREAL_FIELDS(broken)
  };

  std::shared_ptr<const Room> room_;
  Instant now_;
  std::uint64_t seq_ = 0;
  std::uint64_t numbers_ = 0;  // Of compute operations.
  EventQueue<WorldEvent> queue_;
  Decisions decisions_;
  std::vector<node::Node> nodes_;
  std::vector<Incarnation> incarnations_;  // Started so far, by node.
  std::vector<SlotId> starter_slots_;      // Who asked for the process, by node: its slot in the starter.
  std::vector<Instant> hung_until_;
  std::vector<SortedChunks<TimerKey, std::uint64_t>> timers_;  // By node; the number of the event that fires.
  std::vector<SimDevice> devices_;
  std::vector<Instant> link_free_;  // When a rank's payload link is free again, by transfer rank.
  std::vector<SimHost> hosts_;
  SimGroups groups_;
  std::vector<EngineState> engines_;
  Table<std::uint64_t, StoreValue> store_;
  std::vector<node::TinyTrainRank> trainers_;   // By train rank; memory of the process only.
  std::vector<node::TinyEngineRank> replicas_;  // By infer rank over all engines; likewise.
  // On durable storage, by train rank: a process's death does not touch them.
  std::vector<node::TinyCheckpoints> checkpoints_;
  RuleHook rules_;
  FaultPlan faults_;
  std::vector<FaultAction> due_;  // Asked for by the plan within the present event.
  std::optional<port::RunEnded> ended_;
};

}  // namespace areal::sim
