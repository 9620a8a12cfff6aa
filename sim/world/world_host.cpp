// Hosts and the store: device memory, ports, durable values.
#include "sim/world/world.h"

namespace areal::sim {
namespace {

constexpr Duration kMemoryTime = 20_us;
constexpr Duration kPortTime = 200_us;
constexpr Duration kStoreTime = 2_ms;

}  // namespace

void World::reserve(NodeId node, SlotId slot, const port::ReserveBuffer& asked, const node::Origin& origin,
                    port::TraceSink& sink) {
  SimDevice& device = devices_[node.value - 1];
  const bool refused = faults_.refuse_memory(node, {now_, decisions_, sink});
  const bool fits = device.used() <= device.capacity && asked.bytes <= device.capacity - device.used();
  const auto outcome = refused || !fits ? port::Outcome::kNoMemory : port::Outcome::kOk;
  if (outcome == port::Outcome::kOk) device.buffers.push_back({asked.buffer, asked.bytes, asked.tag});
  // New staging memory holds nothing.
  if (asked.tag == port::MemoryTag::kStaging && room_->node(node).role == port::Role::kEngine) {
    replicas_[room_->node(node).transfer_rank].clear_staging();
  }
  post_input(node, slot, port::BufferReady{asked.buffer, outcome}, origin, kMemoryTime);
}

// The host chooses where to look first; whoever asks gets the first port that nobody holds.
void World::lease_port(NodeId node, SlotId slot, const port::LeasePort& asked, const node::Origin& origin,
                       port::TraceSink& sink) {
  constexpr std::uint64_t kCount = kLastPort - kFirstPort + 1;
  const std::uint64_t drawn = decisions_.draw_below({"port.first", node, {}}, kCount, sink);
  SimHost& host = hosts_[room_->node(node).host.value];
  const std::uint16_t port = host.free_from(static_cast<std::uint16_t>(kFirstPort + drawn));
  if (port != 0) host.lease(port);
  const auto outcome = port != 0 ? port::Outcome::kOk : port::Outcome::kRefused;
  post_input(node, slot, port::PortLeased{asked.op, outcome, port}, origin, kPortTime);
}

void World::put_if(NodeId node, SlotId slot, const port::StorePut& asked, const node::Origin& origin) {
  const StoreValue* found = store_.find(asked.key);
  const Digest128 present = found != nullptr ? found->value : Digest128{};
  if (present != asked.expected) {
    post_input(node, slot, port::StoreDone{asked.op, port::Outcome::kMismatch, present}, origin, kStoreTime);
    return;
  }
  if (!store_.edit(asked.key, [&](StoreValue& value) { value.value = asked.value; })) {
    store_.insert(asked.key, StoreValue{asked.value});
  }
  post_input(node, slot, port::StoreDone{asked.op, port::Outcome::kOk, asked.value}, origin, kStoreTime);
}

std::uint64_t World::pair_factor(NodeId sender, NodeId receiver, port::TraceSink& sink) {
  const std::uint64_t first = faults_.payload_factor(sender, {now_, decisions_, sink});
  const std::uint64_t second = faults_.payload_factor(receiver, {now_, decisions_, sink});
  return std::max(first, second);
}

}  // namespace areal::sim
