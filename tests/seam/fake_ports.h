// A hand-written world for a few nodes: what is pending is a list, and the test says which of it happens next.
//
// A World is a value: copying it and continuing both copies gives equal runs. It refuses what the toy protocol does not
// use (compute, memory, store, leases) by failing a check.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/node/node.h"

namespace areal::seam {

// A step of one slot of one node that may happen next.
struct Pending {
  NodeId to;
  Incarnation incarnation = 0;  // Of the process it is meant for; 0 for any.
  Instant due;
  bool is_timer = false;
  node::Delivery delivery;
};

// An effect that a hook put off.
struct Deferred {
  port::Passing passing;
  node::Origin origin;
};

struct Member {
  NodeId node;
  SlotId slot;
  bool ended = false;  // Left, or dead.
  std::vector<port::PostBatch> posted;
};

struct Group {
  GroupId id;
  std::uint32_t world = 0;
  std::size_t met = 0;  // Batches that ended.
  bool is_aborted = false;
  std::vector<Member> members;
};

struct World {
  std::vector<node::Node> nodes;
  std::vector<Pending> pending;
  std::vector<Deferred> deferred;
  std::vector<Group> groups;
  std::vector<port::TraceEvent> trace;
  std::vector<Digest128> states;    // As the nodes said them.
  std::vector<port::Send> outside;  // Messages to nodes that this world does not host: the clients.
  Instant now;
  std::uint64_t last_seq = 0;

  [[nodiscard]] node::Node* find(NodeId id) {
    const auto found = std::ranges::find(nodes, id, &node::Node::id);
    return found != nodes.end() ? &*found : nullptr;
  }
};

// The ports of one node, made for one step. Holds references: lives shorter than the world.
class FakePorts final : public node::OwnPorts, public port::TraceSink {
 public:
  FakePorts(World& world, NodeId self, port::FaultHook* hook) : world_(world), self_(self), hook_(hook) {}

  // ---- Ports ----
  port::TraceSink& sink() override { return *this; }
  port::FaultHook* hook() override { return hook_; }
  void begin_effect(const node::Origin& origin) override { origin_ = origin; }
  std::uint64_t next_seq() override { return ++world_.last_seq; }
  void defer(const port::Passing& passing, const node::Origin& origin) override {
    world_.deferred.push_back({passing, origin});
  }

  // ---- Clock, sink ----
  [[nodiscard]] Instant now() const override { return world_.now; }
  void on_event(const port::TraceEvent& event) override { world_.trace.push_back(event); }
  void on_state(NodeId, SlotId, const Digest128& digest) override { world_.states.push_back(digest); }
  void on_stream(std::uint32_t, std::string_view) override {}
  void on_decision(const port::Decision&) override {}

  // ---- Executor ----
  void arm(SlotId slot, const port::ArmTimer& effect) override {
    remove_timer(slot, effect.timer);
    give(self_, slot, port::TimerFired{effect.timer});
    world_.pending.back().is_timer = true;
    world_.pending.back().due = world_.now + effect.after;
  }
  void disarm(SlotId slot, const port::DisarmTimer& effect) override { remove_timer(slot, effect.timer); }
  void tell(SlotId from, const port::Tell& effect) override {
    give(self_, effect.to_slot, port::TellIn{from, effect.body});
  }

  // ---- Transport ----
  void send(SlotId from, const port::Send& effect) override {
    const Incarnation incarnation = world_.find(self_)->incarnation();
    if (world_.find(effect.to) == nullptr) {
      world_.outside.push_back(effect);
      return;
    }
    give(effect.to, effect.to_slot,
         port::MessageIn{self_, incarnation, from, effect.kind, effect.request, effect.body});
    world_.pending.back().incarnation = 0;
  }
  void join(SlotId slot, const port::JoinGroup& effect) override {
    Group& group = group_of(effect.group);
    group.world = effect.world;
    if (group.is_aborted) return give(self_, slot, port::GroupJoined{effect.group, port::Outcome::kAborted});
    group.members.push_back({self_, slot, false, {}});
    if (group.members.size() < group.world) return;
    for (const Member& member : group.members) give(member.node, member.slot, port::GroupJoined{effect.group});
  }
  void post(SlotId slot, const port::PostBatch& effect) override {
    Group& group = group_of(effect.group);
    Member* member = member_of(group, slot);
    if (group.is_aborted || member == nullptr) {
      return give(self_, slot, done(effect, group.is_aborted ? port::Outcome::kAborted : port::Outcome::kRefused));
    }
    member->posted.push_back(effect);
    const auto has_posted = [&](const Member& one) { return one.posted.size() > group.met; };
    if (group.members.size() < group.world || !std::ranges::all_of(group.members, has_posted)) return;
    const auto tag_is_equal = [&](const Member& one) { return one.posted[group.met].tag == effect.tag; };
    const bool equal = std::ranges::all_of(group.members, tag_is_equal);
    for (const Member& one : group.members) {
      give(one.node, one.slot, done(one.posted[group.met], equal ? port::Outcome::kOk : port::Outcome::kMismatch));
    }
    ++group.met;
  }
  // A living member that did not ask gets kAborted for what it had under way, the asker GroupAborted as well.
  void abort(SlotId slot, const port::AbortGroup& effect) override {
    Group& group = group_of(effect.group);
    if (!group.is_aborted) {
      group.is_aborted = true;
      const bool is_formed = group.members.size() >= group.world;
      for (const Member& one : group.members) {
        if (!is_formed) give(one.node, one.slot, port::GroupJoined{group.id, port::Outcome::kAborted});
        for (std::size_t i = group.met; i < one.posted.size(); ++i) {
          give(one.node, one.slot, done(one.posted[i], port::Outcome::kAborted));
        }
      }
    }
    give(self_, slot, port::GroupAborted{effect.group});
  }
  void leave(SlotId slot, const port::LeaveGroup& effect) override {
    if (Member* member = member_of(group_of(effect.group), slot)) member->ended = true;
  }

  // ---- Process ----
  void start(SlotId slot, const port::StartProcess& effect) override {
    node::Node* node = world_.find(effect.node);
    AREAL_CHECK(node != nullptr);
    const Incarnation incarnation = node->incarnation() + 1;
    node->start(incarnation);
    give(effect.node, SlotId{}, port::Started{incarnation, effect.port, 0});
    give(self_, slot, port::ProcessStarted{effect.op, effect.node, incarnation, port::Outcome::kOk});
  }
  void stop(SlotId, const port::StopProcess&) override { AREAL_CHECK(false); }
  void lease_port(SlotId, const port::LeasePort&) override { AREAL_CHECK(false); }
  void release_port(SlotId, const port::ReleasePort&) override { AREAL_CHECK(false); }

  // ---- Not used by the toy protocol ----
  void reserve(SlotId, const port::ReserveBuffer&) override { AREAL_CHECK(false); }
  void release(SlotId, const port::ReleaseBuffer&) override { AREAL_CHECK(false); }
  void used(SlotId, const port::QueryMemory&) override { AREAL_CHECK(false); }
  void put_if(SlotId, const port::StorePut&) override { AREAL_CHECK(false); }
  void get(SlotId, const port::StoreGet&) override { AREAL_CHECK(false); }
  void start(SlotId, const port::StartCompute&) override { AREAL_CHECK(false); }
  void stop(SlotId, const port::StopCompute&) override { AREAL_CHECK(false); }
  void freeze(SlotId, const port::FreezeCompute&) override { AREAL_CHECK(false); }

 private:
  static port::BatchDone done(const port::PostBatch& batch, port::Outcome outcome) {
    return port::BatchDone{batch.group, batch.batch, outcome, NodeId{}, 0, 0};
  }

  void give(NodeId to, SlotId slot, const proto::Input& input) {
    const Incarnation incarnation = world_.find(to)->incarnation();
    world_.pending.push_back({to, incarnation, world_.now, false, {slot, input, origin_}});
  }

  void remove_timer(SlotId slot, TimerId timer) {
    std::erase_if(world_.pending, [&](const Pending& one) {
      return one.to == self_ && one.is_timer && one.delivery.slot == slot &&
             std::get<port::TimerFired>(one.delivery.input).timer == timer;
    });
  }

  Group& group_of(GroupId id) {
    const auto found = std::ranges::find(world_.groups, id, &Group::id);
    if (found != world_.groups.end()) return *found;
    return world_.groups.emplace_back(Group{id, 0, 0, false, {}});
  }

  Member* member_of(Group& group, SlotId slot) {
    const auto found = std::ranges::find_if(
        group.members, [&](const Member& one) { return one.node == self_ && one.slot == slot && !one.ended; });
    return found != group.members.end() ? &*found : nullptr;
  }

  World& world_;
  NodeId self_;
  port::FaultHook* hook_;
  node::Origin origin_;
};

// The first process of a world, which no protocol starts.
inline void start_node(World& world, NodeId id, std::uint16_t port, port::FaultHook* hook = nullptr) {
  node::Node& node = *world.find(id);
  node.start(node.incarnation() + 1);
  FakePorts ports(world, id, hook);
  const proto::Input started = port::Started{node.incarnation(), port, 0};
  node.step({SlotId{}, started, {}}, ports);
}

// Lets pending[index] happen. What is meant for a process that is gone is dropped.
inline void happen(World& world, std::size_t index, port::FaultHook* hook = nullptr) {
  const Pending chosen = world.pending.at(index);
  world.pending.erase(world.pending.begin() + static_cast<std::ptrdiff_t>(index));
  if (world.now < chosen.due) world.now = chosen.due;
  node::Node& node = *world.find(chosen.to);
  if (!node.alive()) return;
  if (chosen.incarnation != 0 && chosen.incarnation != node.incarnation()) return;
  FakePorts ports(world, chosen.to, hook);
  node.step(chosen.delivery, ports);
}

// Lets everything that was put off happen now.
inline void flush_deferred(World& world, port::FaultHook* hook = nullptr) {
  for (const Deferred& one : std::exchange(world.deferred, {})) {
    const port::Passing& passing = one.passing;
    FakePorts ports(world, passing.node, hook);
    node::Node& node = *world.find(passing.node);
    if (!node.alive()) continue;
    node.run_passed(passing, one.origin, ports);
  }
}

// Ends the process `id`; `watcher` is told.
inline void kill_node(World& world, NodeId id, NodeId watcher) {
  node::Node& node = *world.find(id);
  node.end();
  const Incarnation watching = world.find(watcher)->incarnation();
  const proto::Input exited = port::ProcessExited{id, node.incarnation(), 9};
  world.pending.push_back({watcher, watching, world.now, false, {SlotId{}, exited, {}}});
}

// Hands a message of a client, which is no node of this world, to `to`.
inline void send_from_client(World& world, NodeId client, NodeId to, RequestId request, const Record& body) {
  const proto::Input message = port::MessageIn{client, 1, SlotId{}, port::MessageKind::kRequest, request, body};
  world.pending.push_back({to, 0, world.now, false, {SlotId{}, message, {}}});
}

}  // namespace areal::seam
