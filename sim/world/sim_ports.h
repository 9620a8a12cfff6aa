// The ports of one simulated node: each call goes to the world, in the name of that node.
#pragma once
#include "engine/node/ports.h"
#include "sim/world/world.h"

namespace areal::sim {

// Lives for one step of one node.
class SimPorts final : public node::OwnPorts, public port::TraceSink {
 public:
  SimPorts(World& world, NodeId node, port::TraceSink& sink) : world_(world), node_(node), sink_(sink) {}

  port::TraceSink& sink() override { return *this; }
  port::FaultHook* hook() override { return world_.rules_.empty() ? nullptr : &world_.rules_; }
  void begin_effect(const node::Origin& origin) override { origin_ = origin; }
  std::uint64_t next_seq() override { return ++world_.seq_; }
  void defer(const port::Passing& passing, const node::Origin& origin) override;

  [[nodiscard]] Instant now() const override { return world_.now_; }

  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { sink_.on_state(node, slot, digest); }
  void on_stream(std::uint32_t stream, std::string_view name) override { sink_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override { sink_.on_decision(decision); }

  void arm(SlotId slot, const port::ArmTimer& effect) override;
  void disarm(SlotId slot, const port::DisarmTimer& effect) override;
  void tell(SlotId from, const port::Tell& effect) override;

  void send(SlotId from, const port::Send& effect) override { world_.send(node_, from, effect, origin_, sink_); }
  void join(SlotId slot, const port::JoinGroup& effect) override { world_.join(node_, slot, effect, origin_); }
  void post(SlotId slot, const port::PostBatch& effect) override {
    world_.post_batch(node_, slot, effect, origin_, sink_);
  }
  void abort(SlotId slot, const port::AbortGroup& effect) override {
    world_.abort_group(node_, slot, effect.group, origin_);
  }
  void leave(SlotId /*slot*/, const port::LeaveGroup& effect) override { world_.leave_group(node_, effect.group); }

  void reserve(SlotId slot, const port::ReserveBuffer& effect) override {
    world_.reserve(node_, slot, effect, origin_, sink_);
  }
  void release(SlotId slot, const port::ReleaseBuffer& effect) override;
  void used(SlotId slot, const port::QueryMemory& effect) override;

  void put_if(SlotId slot, const port::StorePut& effect) override { world_.put_if(node_, slot, effect, origin_); }
  void get(SlotId slot, const port::StoreGet& effect) override;

  void lease_port(SlotId slot, const port::LeasePort& effect) override {
    world_.lease_port(node_, slot, effect, origin_, sink_);
  }
  void release_port(SlotId slot, const port::ReleasePort& effect) override;
  void start(SlotId slot, const port::StartProcess& effect) override;
  void stop(SlotId slot, const port::StopProcess& effect) override;

  void start(SlotId slot, const port::StartCompute& effect) override {
    world_.start_compute(node_, slot, effect, origin_);
  }
  void stop(SlotId /*slot*/, const port::StopCompute& effect) override { world_.stop_compute(node_, effect.op); }
  void freeze(SlotId /*slot*/, const port::FreezeCompute& effect) override { world_.freeze(node_, effect.frozen); }

 private:
  [[nodiscard]] bool is_node(NodeId node) const;
  [[nodiscard]] HostId host() const { return world_.room_->node(node_).host; }

  World& world_;
  NodeId node_;
  port::TraceSink& sink_;
  node::Origin origin_;
};

}  // namespace areal::sim
