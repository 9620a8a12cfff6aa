// One message between nodes as bytes: who sent it, where in causal order, and the send effect with its body.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/port/types.h"

namespace areal::host {

struct WireMessage {
  NodeId from{};
  Incarnation from_incarnation = 0;
  SlotId from_slot{};
  // Of the sender's trace event: what puts recordings of several processes into one causal order.
  std::uint64_t seq = 0;
  std::uint64_t lamport = 0;
  port::Send send{};
};

// At most 256 bytes.
std::vector<std::uint8_t> encode_message(const WireMessage& message);

// Nothing if the bytes are no message: not words, another shape, a value out of an enum's range, or no body.
std::optional<WireMessage> decode_message(std::span<const std::uint8_t> bytes);

// What the protocol at `message.send.to_slot` gets to see.
port::MessageIn message_input(const WireMessage& message);

}  // namespace areal::host
