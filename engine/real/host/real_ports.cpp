#include "engine/real/host/real_ports.h"

#include <algorithm>
#include <utility>

#include "engine/base/rng.h"
#include "engine/node/remote_cause.h"

namespace areal::host {

RealPorts::RealPorts(const RealPortsParts& parts, RealComputeOptions compute)
    : parts_(parts),
      compute_(*parts.loop,
               [&] {
                 compute.fails = [this](port::ComputeKind what) {
                   return parts_.faults != nullptr && parts_.faults->fails(what);
                 };
                 compute.deliver = [this](SlotId slot, const port::ComputeDone& done) { computed(slot, done); };
                 return std::move(compute);
               }()),
      store_worker_(*parts.loop) {}

RealPorts::~RealPorts() = default;

void RealPorts::start(Incarnation incarnation, std::uint16_t port, std::uint64_t seed) {
  parts_.node->start(incarnation);
  const std::uint64_t word = mix_words(mix_words(seed, parts_.node->id().value), incarnation);
  for (std::uint64_t slot = 0; slot < parts_.node->slots().size(); ++slot) {
    deliver(SlotId{slot}, port::Started{incarnation, port, mix_words(word, slot)}, {});
  }
}

void RealPorts::deliver(SlotId slot, const proto::Input& input, const node::Origin& origin) {
  if (slot.value >= parts_.node->slots().size()) return;
  parts_.node->step({slot, input, origin}, *this);
}

void RealPorts::deliver_later(SlotId slot, const proto::Input& input) {
  parts_.loop->post([this, slot, input, origin = origin_] { deliver(slot, input, origin); });
}

void RealPorts::defer(const port::Passing& passing, const node::Origin& origin) {
  if (passing.node != parts_.node->id()) return;  // A rule at another process is that process's own.
  const auto run = [this, passing, origin] { parts_.node->run_passed(passing, origin, *this); };
  if (passing.delay.ns > 0) {
    parts_.loop->arm(passing.delay, run);
  } else {
    parts_.loop->post(run);
  }
}

// ---- Compute ----

void RealPorts::start(SlotId slot, const port::StartCompute& effect) {
  computing_.emplace_back(effect.op, origin_);
  compute_.start(slot, effect);
}

void RealPorts::computed(SlotId slot, const port::ComputeDone& done) {
  const auto place = std::ranges::find(computing_, done.op, &std::pair<OpId, node::Origin>::first);
  if (place == computing_.end()) return;
  const node::Origin origin = place->second;
  const bool goes_on = done.what == port::ComputeKind::kGenerate && done.total == 1;  // Parked.
  if (!goes_on) computing_.erase(place);
  parts_.loop->post([this, slot, done, origin] { deliver(slot, done, origin); });
}

// ---- Executor ----

void RealPorts::arm(SlotId slot, const port::ArmTimer& effect) {
  disarm(slot, port::DisarmTimer{effect.timer});
  const LoopTimer armed = parts_.loop->arm(effect.after, [this, slot, timer = effect.timer, origin = origin_] {
    std::erase_if(timers_, [&](const Timer& one) { return one.slot == slot && one.timer == timer; });
    deliver(slot, port::TimerFired{timer}, origin);
  });
  timers_.push_back({slot, effect.timer, armed});
}

void RealPorts::disarm(SlotId slot, const port::DisarmTimer& effect) {
  std::erase_if(timers_, [&](const Timer& one) {
    if (one.slot != slot || one.timer != effect.timer) return false;
    parts_.loop->cancel(one.armed);
    return true;
  });
}

void RealPorts::tell(SlotId from, const port::Tell& effect) {
  deliver_later(effect.to_slot, port::TellIn{from, effect.body});
}

// ---- Messages ----

void RealPorts::send(SlotId from, const port::Send& effect) {
  WireMessage message;
  message.from = parts_.node->id();
  message.from_incarnation = parts_.node->incarnation();
  message.from_slot = from;
  message.seq = origin_.seq;
  message.lamport = origin_.lamport;
  message.send = effect;
  if (effect.to == parts_.node->id()) {
    deliver_later(effect.to_slot, message_input(message));
    return;
  }
  MessageLot lot;
  if (parts_.faults != nullptr) lot = parts_.faults->lot_of(effect.to, effect);
  if (lot.lost) return;
  const std::vector<std::uint8_t> bytes = encode_message(message);
  for (std::uint32_t copy = 0; copy < lot.copies; ++copy) {
    if (lot.late.ns > 0) {
      parts_.loop->arm(lot.late, [this, to = effect.to, bytes] { links_->send(to, bytes); });
    } else {
      links_->send(effect.to, bytes);
    }
  }
}

bool RealPorts::take_message(const Identity& from, std::span<const std::uint8_t> bytes) {
  const std::optional<WireMessage> message = decode_message(bytes);
  // Who speaks is who proved itself, whatever the message says.
  if (!message || message->from != from.node || message->from_incarnation != from.incarnation) return false;
  if (message->send.to != parts_.node->id() || message->send.to_slot.value >= parts_.node->slots().size()) return false;
  const node::Origin origin{node::remote_cause({from.node, from.incarnation, message->seq}), message->lamport};
  deliver(message->send.to_slot, message_input(*message), origin);
  return true;
}

// ---- Memory ----

std::uint64_t RealPorts::used_bytes() const {
  std::uint64_t sum = 0;
  for (const Buffer& buffer : buffers_) sum += buffer.bytes.size();
  return sum;
}

void RealPorts::reserve(SlotId slot, const port::ReserveBuffer& effect) {
  const bool refused = parts_.faults != nullptr && parts_.faults->refuses_memory();
  const bool fits = effect.bytes <= parts_.room->scenario.devices.memory - used_bytes();
  port::Outcome outcome = refused || !fits ? port::Outcome::kNoMemory : port::Outcome::kOk;
  if (outcome == port::Outcome::kOk) {
    try {
      buffers_.push_back({effect.buffer, effect.tag, std::vector<std::byte>(effect.bytes)});
    } catch (const std::bad_alloc&) {
      outcome = port::Outcome::kNoMemory;
    }
  }
  if (effect.tag == port::MemoryTag::kStaging && compute_.engine_rank() != nullptr) {
    compute_.engine_rank()->clear_staging();
    receiver_.clear();
  }
  deliver_later(slot, port::BufferReady{effect.buffer, outcome});
}

void RealPorts::release(SlotId slot, const port::ReleaseBuffer& effect) {
  std::erase_if(buffers_, [&](const Buffer& buffer) { return buffer.id == effect.buffer; });
  deliver_later(slot, port::BufferReleased{effect.buffer});
}

void RealPorts::used(SlotId slot, const port::QueryMemory& effect) {
  std::uint64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.tag == effect.tag ? buffer.bytes.size() : 0;
  deliver_later(slot, port::MemoryUsed{effect.op, bytes});
}

// ---- Store ----

void RealPorts::put_if(SlotId slot, const port::StorePut& effect) {
  store_worker_.run([this, slot, effect, origin = origin_]() -> std::function<void()> {
    const StoreAnswer answer = parts_.store->put_if(effect.key, effect.expected, effect.value);
    return [this, slot, effect, origin, answer] { store_done(slot, effect.op, origin, answer); };
  });
}

void RealPorts::get(SlotId slot, const port::StoreGet& effect) {
  store_worker_.run([this, slot, effect, origin = origin_]() -> std::function<void()> {
    const StoreAnswer answer = parts_.store->get(effect.key);
    return [this, slot, effect, origin, answer] { store_done(slot, effect.op, origin, answer); };
  });
}

void RealPorts::store_done(SlotId slot, OpId op, const node::Origin& origin, const StoreAnswer& answer) {
  deliver(slot, port::StoreDone{op, answer.outcome, answer.value}, origin);
}

// ---- Processes ----

void RealPorts::lease_port(SlotId slot, const port::LeasePort& effect) {
  const std::uint16_t port = parts_.processes != nullptr ? parts_.processes->lease_port() : std::uint16_t{0};
  deliver_later(slot, port::PortLeased{effect.op, port != 0 ? port::Outcome::kOk : port::Outcome::kRefused, port});
}

void RealPorts::release_port(SlotId /*slot*/, const port::ReleasePort& effect) {
  if (parts_.processes != nullptr) parts_.processes->release_port(effect.port);
}

void RealPorts::start(SlotId slot, const port::StartProcess& effect) {
  if (parts_.processes == nullptr) {
    deliver_later(slot, port::ProcessStarted{effect.op, effect.node, 0, port::Outcome::kRefused});
    return;
  }
  const node::Origin origin = origin_;
  parts_.processes->start(
      effect.node, effect.port,
      [this, slot, effect, origin](Incarnation incarnation) {
        const port::Outcome outcome = incarnation != 0 ? port::Outcome::kOk : port::Outcome::kRefused;
        deliver(slot, port::ProcessStarted{effect.op, effect.node, incarnation, outcome}, origin);
      },
      [this, slot, node = effect.node](Incarnation incarnation, std::int32_t code) {
        links_->forget(node);
        deliver(slot, port::ProcessExited{node, incarnation, code}, {});
      });
}

void RealPorts::stop(SlotId /*slot*/, const port::StopProcess& effect) {
  if (parts_.processes != nullptr) parts_.processes->stop(effect.node, effect.grace);
}

}  // namespace areal::host
