#include "engine/real/host/channel.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::host {
namespace {

std::array<std::uint8_t, kTagBytes> tag_of(const MacKey& key, std::span<const std::uint8_t> payload,
                                           std::uint64_t sequence) {
  const Mac256 mac = key.mac({header_bytes(FrameKind::kMessage, payload.size() + kTagBytes, sequence), payload});
  std::array<std::uint8_t, kTagBytes> tag{};
  std::copy_n(mac.begin(), kTagBytes, tag.begin());
  return tag;
}

}  // namespace

void Channel::append(FrameKind kind, std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& out) {
  append_frame({kind, next_sequence_++, payload}, out);
}

void Channel::start(std::vector<std::uint8_t>& out) {
  if (const auto hello = handshake_.start()) append(hello->kind, hello->payload, out);
}

ChannelEvent Channel::refuse(Refusal reason) {
  refusal_ = reason;
  message_ = {};
  return ChannelEvent::kRefused;
}

ChannelEvent Channel::feed(std::span<const std::uint8_t>& chunk, std::vector<std::uint8_t>& out) {
  if (refusal_ != Refusal::kNone) return ChannelEvent::kRefused;
  while (true) {
    const std::optional<Frame> frame = reader_.next(chunk);
    if (!frame) {
      if (reader_.refusal() == Refusal::kNone) return ChannelEvent::kNeedsMore;
      // Only a peer that talks frames can read our answer.
      if (reader_.refusal() == Refusal::kBadVersion) append_reason(Refusal::kBadVersion, out);
      return refuse(reader_.refusal());
    }
    if (keys_.has_value()) return take_message(*frame);
    const ChannelEvent event = take_handshake(*frame, out);
    if (event != ChannelEvent::kNeedsMore) return event;
  }
}

ChannelEvent Channel::take_handshake(const Frame& frame, std::vector<std::uint8_t>& out) {
  if (const auto reply = handshake_.step(frame)) append(reply->kind, reply->payload, out);
  if (handshake_.refusal() != Refusal::kNone) {
    peer_reason_ = handshake_.peer_reason();
    return refuse(handshake_.refusal());
  }
  if (!handshake_.is_done()) return ChannelEvent::kNeedsMore;
  keys_ = handshake_.keys();
  reader_.set_limit(kMaxPayloadBytes);
  return ChannelEvent::kOpened;
}

ChannelEvent Channel::take_message(const Frame& frame) {
  // A server that does not take our proof says so without a key.
  if (frame.kind == FrameKind::kRefuse && handshake_.is_client()) {
    peer_reason_ = decode_reason(frame.payload);
    return refuse(Refusal::kRefusedByPeer);
  }
  if (frame.kind != FrameKind::kMessage) return refuse(Refusal::kBadKind);
  if (frame.payload.size() < kTagBytes) return refuse(Refusal::kBadTag);
  const auto payload = frame.payload.first(frame.payload.size() - kTagBytes);
  const MacKey& key = handshake_.is_client() ? keys_->to_client : keys_->to_server;
  if (!equal_secretly(tag_of(key, payload, frame.sequence), frame.payload.last(kTagBytes))) {
    return refuse(Refusal::kBadTag);
  }
  message_ = payload;
  return ChannelEvent::kMessage;
}

void Channel::seal(std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& out) {
  AREAL_CHECK(is_open());
  AREAL_CHECK(payload.size() <= kMaxMessageBytes);
  const MacKey& key = handshake_.is_client() ? keys_->to_server : keys_->to_client;
  const auto tag = tag_of(key, payload, next_sequence_);
  std::vector<std::uint8_t> tagged(payload.begin(), payload.end());
  tagged.insert(tagged.end(), tag.begin(), tag.end());
  append(FrameKind::kMessage, tagged, out);
}

}  // namespace areal::host
