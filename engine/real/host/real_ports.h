// The ports of one real process: clock, timers, messages, groups, memory, store, children and compute, on one loop.
//
// Every completion becomes an input of the node's protocols on the loop, in the order in which it came; that order is
// what the trace records. Inputs carry the number of the effect that led to them; those of other processes are named
// (remote_cause.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/node/node.h"
#include "engine/node/ports.h"
#include "engine/node/room_plan.h"
#include "engine/node/tiny_payload.h"
#include "engine/real/host/file_store.h"
#include "engine/real/host/group_backend.h"
#include "engine/real/host/links.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/message_codec.h"
#include "engine/real/host/node_faults.h"
#include "engine/real/host/process_backend.h"
#include "engine/real/host/real_compute.h"
#include "engine/real/host/worker.h"

namespace areal::host {

// All outlive the ports. `faults` and `processes` may be null.
struct RealPortsParts {
  Loop* loop = nullptr;
  const node::RoomPlan* room = nullptr;
  node::Node* node = nullptr;
  port::TraceSink* sink = nullptr;
  const FileStore* store = nullptr;
  NodeFaults* faults = nullptr;
  ProcessBackend* processes = nullptr;
};

// Called by the loop only.
class RealPorts final : public node::OwnPorts {
 public:
  // Wants set_links() and set_groups() before the node starts.
  RealPorts(const RealPortsParts& parts, RealComputeOptions compute);
  ~RealPorts() override;

  void set_links(Links* links) { links_ = links; }
  void set_groups(GroupBackend* groups) { groups_ = groups; }

  // The process begins: Started to every slot.
  void start(Incarnation incarnation, std::uint16_t port, std::uint64_t seed);
  // A message of another process; false if it is none that this node can take.
  bool take_message(const Identity& from, std::span<const std::uint8_t> bytes);
  void take_news(GroupNews news);

  port::TraceSink& sink() override { return *parts_.sink; }
  port::FaultHook* hook() override { return parts_.faults != nullptr ? parts_.faults->hook() : nullptr; }
  void begin_effect(const node::Origin& origin) override { origin_ = origin; }
  std::uint64_t next_seq() override { return ++seq_; }
  void defer(const port::Passing& passing, const node::Origin& origin) override;

  [[nodiscard]] Instant now() const override { return parts_.loop->now(); }

  void arm(SlotId slot, const port::ArmTimer& effect) override;
  void disarm(SlotId slot, const port::DisarmTimer& effect) override;
  void tell(SlotId from, const port::Tell& effect) override;

  void send(SlotId from, const port::Send& effect) override;
  void join(SlotId slot, const port::JoinGroup& effect) override;
  void post(SlotId slot, const port::PostBatch& effect) override;
  void abort(SlotId slot, const port::AbortGroup& effect) override;
  void leave(SlotId slot, const port::LeaveGroup& effect) override;

  void reserve(SlotId slot, const port::ReserveBuffer& effect) override;
  void release(SlotId slot, const port::ReleaseBuffer& effect) override;
  void used(SlotId slot, const port::QueryMemory& effect) override;

  void put_if(SlotId slot, const port::StorePut& effect) override;
  void get(SlotId slot, const port::StoreGet& effect) override;

  void lease_port(SlotId slot, const port::LeasePort& effect) override;
  void release_port(SlotId slot, const port::ReleasePort& effect) override;
  void start(SlotId slot, const port::StartProcess& effect) override;
  void stop(SlotId slot, const port::StopProcess& effect) override;

  void start(SlotId slot, const port::StartCompute& effect) override;
  void stop(SlotId slot, const port::StopCompute& effect) override { compute_.stop(slot, effect); }
  void freeze(SlotId slot, const port::FreezeCompute& effect) override { compute_.freeze(slot, effect); }

 private:
  struct Timer {
    SlotId slot{};
    TimerId timer{};
    LoopTimer armed{};
  };
  struct Buffer {
    BufferId id{};
    port::MemoryTag tag = port::MemoryTag::kStaging;
    std::vector<std::byte> bytes;
  };
  // A join, batch or abort under way.
  struct Wish {
    SlotId slot{};
    node::Origin origin;
    port::PostBatch batch;
  };

  void deliver(SlotId slot, const proto::Input& input, const node::Origin& origin);
  // The same, from the loop's next turn: a port never answers within the call.
  void deliver_later(SlotId slot, const proto::Input& input);
  void computed(SlotId slot, const port::ComputeDone& done);
  [[nodiscard]] node::BatchPayload payload_of(const port::PostBatch& batch);
  node::PayloadEnd take_payload(const port::PostBatch& batch, const node::BatchPayload& payload);
  [[nodiscard]] bool moves_weights(const port::PostBatch& batch) const;
  [[nodiscard]] NodeId member_of(GroupId group, std::uint32_t rank) const;
  void batch_done(const GroupNews& news);
  void store_done(SlotId slot, OpId op, const node::Origin& origin, const StoreAnswer& answer);
  [[nodiscard]] std::uint64_t used_bytes() const;

  RealPortsParts parts_;
  RealCompute compute_;
  Worker store_worker_;
  Links* links_ = nullptr;
  GroupBackend* groups_ = nullptr;
  node::Origin origin_;
  std::uint64_t seq_ = 0;
  std::vector<Timer> timers_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<GroupId, Wish>> joins_;
  std::vector<std::pair<GroupId, Wish>> aborts_;
  std::vector<Wish> batches_;
  std::vector<std::pair<GroupId, std::pair<std::uint32_t, std::uint32_t>>> places_;  // Rank and world, by group.
  std::vector<std::pair<OpId, node::Origin>> computing_;
  node::TinySenderPayload sender_;
  node::TinyReceiverPayload receiver_;
};

}  // namespace areal::host
