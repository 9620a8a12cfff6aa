// One end of a connection without its socket: frames, handshake, then tagged messages; bytes in, bytes out.
//
// After the handshake every payload ends in a tag: the first 128 bits of HMAC-SHA256 under the session key of its
// direction, over the frame's header with its sequence number and over the payload. RFC 2104 section 5 advises to keep
// at least half of the hash; HMAC because OpenSSL has it everywhere and it needs no nonce of its own. So a frame that
// was changed, repeated, moved, left out, or made in another session or direction is refused.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/real/host/frame_codec.h"
#include "engine/real/host/handshake.h"

namespace areal::host {

inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kMaxMessageBytes = kMaxPayloadBytes - kTagBytes;

enum class ChannelEvent : std::uint8_t { kNeedsMore, kOpened, kMessage, kRefused };

// Not thread-safe.
class Channel {
 public:
  Channel(const HandshakeSetup& setup, MacKey secret)
      : handshake_(setup, std::move(secret)), reader_(kMaxHandshakePayload) {}

  // What a client sends first is appended to `out`. Called once, before feed().
  void start(std::vector<std::uint8_t>& out);
  // Takes bytes from the front of `chunk` until something happened or all are used up; appends to `out` what is to be
  // sent. After kRefused, `out` holds the reason for the peer, nothing more is taken, and the connection must be
  // closed.
  ChannelEvent feed(std::span<const std::uint8_t>& chunk, std::vector<std::uint8_t>& out);
  // The payload after kMessage, valid until the next feed().
  [[nodiscard]] std::span<const std::uint8_t> message() const { return message_; }
  // Appends `payload` as the next frame. REQUIRES: is_open(), payload.size() <= kMaxMessageBytes.
  void seal(std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& out);

  // Appends a last word: why the connection will be closed.
  void append_reason(Refusal reason, std::vector<std::uint8_t>& out) {
    append(FrameKind::kRefuse, encode_reason(reason), out);
  }

  [[nodiscard]] bool is_open() const { return keys_.has_value() && refusal_ == Refusal::kNone; }
  [[nodiscard]] Refusal refusal() const { return refusal_; }
  [[nodiscard]] Refusal peer_reason() const { return peer_reason_; }
  // Proved once kOpened was returned; before, what it claims, or whom we called.
  [[nodiscard]] const Identity& peer() const { return handshake_.peer(); }
  [[nodiscard]] std::size_t held_bytes() const { return reader_.held_bytes(); }

 private:
  ChannelEvent take_handshake(const Frame& frame, std::vector<std::uint8_t>& out);
  ChannelEvent take_message(const Frame& frame);
  ChannelEvent refuse(Refusal reason);
  void append(FrameKind kind, std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& out);

  Handshake handshake_;
  FrameReader reader_;
  std::optional<SessionKeys> keys_;
  std::uint64_t next_sequence_ = 0;  // Of what is sent.
  std::span<const std::uint8_t> message_;
  Refusal refusal_ = Refusal::kNone;
  Refusal peer_reason_ = Refusal::kNone;
};

}  // namespace areal::host
