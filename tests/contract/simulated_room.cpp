#include "tests/contract/simulated_room.h"

#include "engine/base/check.h"
#include "engine/config/scenario_yaml.h"
#include "sim/world/sim_ports.h"
#include "tests/contract/listener.h"

namespace areal::test {
namespace {

constexpr std::string_view kScenario = R"(
scenario:
  name: port_contract
  why: One engine, one trainer, no protocols.
  model: tiny
  train: {backend: "megatron:d1", step_time: 2s}
  rollout: {backend: "sglang:d1t1", max_new_tokens: 1024}
  devices: {load_time: 1s, start_time: 500ms}
)";

class NullSink final : public port::EventSink {
 public:
  void on_event(const port::TraceEvent& /*event*/) override {}
};

std::shared_ptr<const sim::Room> make_room() {
  const config::ReadScenario read = config::read_scenario(std::string(kScenario), "port_contract.yaml");
  AREAL_CHECK(read.scenario.has_value());
  auto room = sim::build_room(*read.scenario, {});
  AREAL_CHECK(room.has_value());
  return *room;
}

sim::World make_world(const std::shared_ptr<const sim::Room>& room) {
  std::vector<node::Node> nodes;
  for (const sim::RoomNode& place : room->nodes) {
    nodes.emplace_back(place.id, place.name, two_listeners());
  }
  auto world = sim::World::make_hosting(room, 1, sim::Profile::kCalm, {}, std::move(nodes));
  AREAL_CHECK(world.has_value());
  return std::move(*world);
}

class SimulatedRoom final : public PortHarness {
 public:
  explicit SimulatedRoom(std::shared_ptr<const sim::Room> room) : room_(std::move(room)), world_(make_world(room_)) {
    for (const sim::RoomNode& place : room_->nodes) {
      ports_.push_back(std::make_unique<sim::SimPorts>(world_, place.id, sink_));
    }
    world_.start(sink_);
    for (const sim::RoomNode& place : room_->nodes) {
      if (place.starter.value != 0) start(place.id);
    }
    settle();
    for (const sim::RoomNode& place : room_->nodes) {
      born_.push_back(world_.node(place.id).incarnation());
      old_.push_back({listener(place.id, SlotId{0}).seen().size(), listener(place.id, SlotId{1}).seen().size()});
    }
  }

  [[nodiscard]] HarnessFacts facts() const override {
    HarnessFacts facts;
    facts.memory = room_->scenario.devices.memory;
    facts.reset_after = room_->scenario.links.reset_after;
    facts.silence = 60_s;
    for (const proto::MemberPass& pass : room_->members->front().passes) facts.payload.push_back(pass.wire);
    facts.max_tokens = room_->scenario.rollout.max_new_tokens;
    facts.has_nccl = true;
    return facts;
  }
  [[nodiscard]] NodeId node(Seat seat) const override {
    switch (seat) {
      case Seat::kEngine:
        return room_->cluster.engine_ranks[0];
      case Seat::kTrainer:
        return room_->cluster.trainers[0];
      case Seat::kOther:
        return room_->cluster.gateway;
      case Seat::kGuard:
        return room_->cluster.guards[0];
    }
    return {};
  }
  [[nodiscard]] Incarnation incarnation(Seat seat) const override { return world_.node(node(seat)).incarnation(); }
  node::Ports& ports(Seat seat) override { return *ports_[node(seat).value - 1]; }

  [[nodiscard]] std::vector<proto::Input> seen(Seat seat, SlotId slot) const override {
    const NodeId id = node(seat);
    const std::size_t index = id.value - 1;
    const std::vector<proto::Erased>& all = listener(id, slot).seen();
    const bool same_process = world_.node(id).incarnation() == born_[index];
    std::vector<proto::Input> inputs;
    for (std::size_t i = same_process ? old_[index][slot.value] : 0; i < all.size(); ++i) {
      inputs.push_back(*proto::input_of(all[i]));
    }
    return inputs;
  }

  // A timer of a node that no contract looks at makes the time pass even if nothing else happens.
  void pass(Duration duration) override {
    const Instant until = world_.now() + duration;
    ports_[room_->cluster.store.value - 1]->arm(SlotId{0}, {TimerId{1}, duration});
    while (world_.has_event() && world_.queue().next_time() <= until) world_.step(sink_);
  }
  void settle() override {
    while (world_.has_event()) world_.step(sink_);
  }
  void kill(Seat seat) override {
    const NodeId starter = room_->node(node(seat)).starter;
    ports_[starter.value - 1]->stop(SlotId{0}, port::StopProcess{node(seat), {}});
    while (world_.node(node(seat)).alive()) world_.step(sink_);
  }
  void restart(Seat seat) override {
    start(node(seat));
    while (!world_.node(node(seat)).alive()) world_.step(sink_);
  }

 private:
  void start(NodeId id) {
    ports_[room_->node(id).starter.value - 1]->start(SlotId{0}, port::StartProcess{OpId{id.value}, id, 0});
  }
  [[nodiscard]] const Listener& listener(NodeId id, SlotId slot) const {
    return *world_.node(id).slots()[slot.value].as<Listener>();
  }

  std::shared_ptr<const sim::Room> room_;
  NullSink sink_;
  sim::World world_;
  std::vector<std::unique_ptr<sim::SimPorts>> ports_;
  std::vector<Incarnation> born_;
  std::vector<std::array<std::size_t, 2>> old_;  // Inputs from before the harness was ready, by node and slot.
};

}  // namespace

std::unique_ptr<PortHarness> make_simulated_room() {
  static const std::shared_ptr<const sim::Room> kRoom = make_room();
  return std::make_unique<SimulatedRoom>(kRoom);
}

}  // namespace areal::test
