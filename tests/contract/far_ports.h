// The ports of a node in another process: every call becomes an effect that is carried out there.
#pragma once
#include <functional>

#include "engine/base/check.h"
#include "engine/node/ports.h"
#include "engine/proto/effect.h"

namespace areal::test {

// Both return once the call has returned over there.
struct FarNode {
  std::function<void(SlotId, const proto::Effect&)> carry_out;
  std::function<Instant()> now;
};

// Not for nodes: what a node alone asks of its ports is a failed check.
class FarPorts final : public node::OwnPorts {
 public:
  explicit FarPorts(FarNode far) : far_(std::move(far)) {}

  port::TraceSink& sink() override { no_node(); }
  port::FaultHook* hook() override { no_node(); }
  void begin_effect(const node::Origin& /*origin*/) override { no_node(); }
  std::uint64_t next_seq() override { no_node(); }
  void defer(const port::Passing& /*passing*/, const node::Origin& /*origin*/) override { no_node(); }

  [[nodiscard]] Instant now() const override { return far_.now(); }
  void arm(SlotId slot, const port::ArmTimer& effect) override { far_.carry_out(slot, effect); }
  void disarm(SlotId slot, const port::DisarmTimer& effect) override { far_.carry_out(slot, effect); }
  void tell(SlotId from, const port::Tell& effect) override { far_.carry_out(from, effect); }
  void send(SlotId from, const port::Send& effect) override { far_.carry_out(from, effect); }
  void join(SlotId slot, const port::JoinGroup& effect) override { far_.carry_out(slot, effect); }
  void post(SlotId slot, const port::PostBatch& effect) override { far_.carry_out(slot, effect); }
  void abort(SlotId slot, const port::AbortGroup& effect) override { far_.carry_out(slot, effect); }
  void leave(SlotId slot, const port::LeaveGroup& effect) override { far_.carry_out(slot, effect); }
  void reserve(SlotId slot, const port::ReserveBuffer& effect) override { far_.carry_out(slot, effect); }
  void release(SlotId slot, const port::ReleaseBuffer& effect) override { far_.carry_out(slot, effect); }
  void used(SlotId slot, const port::QueryMemory& effect) override { far_.carry_out(slot, effect); }
  void put_if(SlotId slot, const port::StorePut& effect) override { far_.carry_out(slot, effect); }
  void get(SlotId slot, const port::StoreGet& effect) override { far_.carry_out(slot, effect); }
  void lease_port(SlotId slot, const port::LeasePort& effect) override { far_.carry_out(slot, effect); }
  void release_port(SlotId slot, const port::ReleasePort& effect) override { far_.carry_out(slot, effect); }
  void start(SlotId slot, const port::StartProcess& effect) override { far_.carry_out(slot, effect); }
  void stop(SlotId slot, const port::StopProcess& effect) override { far_.carry_out(slot, effect); }
  void start(SlotId slot, const port::StartCompute& effect) override { far_.carry_out(slot, effect); }
  void stop(SlotId slot, const port::StopCompute& effect) override { far_.carry_out(slot, effect); }
  void freeze(SlotId slot, const port::FreezeCompute& effect) override { far_.carry_out(slot, effect); }

 private:
  [[noreturn]] static void no_node() { check_failed("called by a node", __FILE__, __LINE__); }

  FarNode far_;
};

}  // namespace areal::test
