#include "engine/real/host/message_codec.h"

#include "engine/real/host/wire_fields.h"

namespace areal::host {
namespace {

struct MessageFields {
  NodeId from{};
  Incarnation from_incarnation = 0;
  SlotId from_slot{};
  std::uint64_t seq = 0;
  std::uint64_t lamport = 0;
  Record send{};
  Record body{};
  AREAL_FIELDS(from, from_incarnation, from_slot, seq, lamport, send, body)
};

}  // namespace

std::vector<std::uint8_t> encode_message(const WireMessage& message) {
  return encode_fields(MessageFields{.from = message.from,
                                     .from_incarnation = message.from_incarnation,
                                     .from_slot = message.from_slot,
                                     .seq = message.seq,
                                     .lamport = message.lamport,
                                     .send = to_record(message.send),
                                     .body = message.send.body});
}

std::optional<WireMessage> decode_message(std::span<const std::uint8_t> bytes) {
  const std::optional<MessageFields> fields = decode_fields<MessageFields>(bytes);
  if (!fields || !fits_record<port::Send>(fields->send) || fields->body.kind == 0) return std::nullopt;
  WireMessage message{.from = fields->from,
                      .from_incarnation = fields->from_incarnation,
                      .from_slot = fields->from_slot,
                      .seq = fields->seq,
                      .lamport = fields->lamport,
                      .send = from_record<port::Send>(fields->send)};
  message.send.body = fields->body;
  return message;
}

port::MessageIn message_input(const WireMessage& message) {
  return {.from = message.from,
          .from_incarnation = message.from_incarnation,
          .from_slot = message.from_slot,
          .kind = message.send.kind,
          .request = message.send.request,
          .body = message.send.body};
}

}  // namespace areal::host
