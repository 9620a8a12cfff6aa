// Frames on a byte stream: a fixed header and a bounded payload, read from chunks of any size.
//
// A frame is four little-endian words and the payload: [magic:32 | format version:16 | kind:16] [payload bytes]
// [sequence, from 0 in each direction of a connection] [checksum of the three words and the payload: low half of
// XXH3-128]. The checksum tells accidents; who wrote a frame is shown by the tag inside its payload (channel.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/real/host/refusal.h"

namespace areal::host {

inline constexpr std::uint32_t kFrameMagic = 0x4C524141;  // "AARL" on the wire.
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 32;
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{64} * 1024;

enum class FrameKind : std::uint8_t { kClientHello, kServerHello, kClientProof, kMessage, kRefuse };
constexpr std::array<std::string_view, 5> enum_names(FrameKind /*tag*/) {
  return {"client_hello", "server_hello", "client_proof", "message", "refuse"};
}

struct Frame {
  FrameKind kind = FrameKind::kClientHello;
  std::uint64_t sequence = 0;
  std::span<const std::uint8_t> payload;
};

// What the header says but for the checksum, for tags that cover it.
std::array<std::uint8_t, 24> header_bytes(FrameKind kind, std::uint64_t payload_bytes, std::uint64_t sequence);

// REQUIRES: frame.payload.size() <= kMaxPayloadBytes.
void append_frame(const Frame& frame, std::vector<std::uint8_t>& out);

// Cuts a stream into frames. Holds at most one header and `limit` payload bytes, and refuses as early as the bytes
// tell; the first refusal is final. Not thread-safe.
class FrameReader {
 public:
  // `limit`: of payload bytes, at most kMaxPayloadBytes.
  explicit FrameReader(std::size_t limit = kMaxPayloadBytes);

  // Takes bytes from the front of `chunk` up to the end of the next frame, and yields that frame. Nothing if the chunk
  // is used up before, or on a refusal. The payload is valid until the next call.
  std::optional<Frame> next(std::span<const std::uint8_t>& chunk);

  // For the frames after the one that was yielded last. REQUIRES: limit <= kMaxPayloadBytes.
  void set_limit(std::size_t limit);
  [[nodiscard]] Refusal refusal() const { return refusal_; }
  [[nodiscard]] std::size_t held_bytes() const { return bytes_.capacity(); }

 private:
  // Moves bytes over until `size` are held; says whether they are.
  bool fill(std::size_t size, std::span<const std::uint8_t>& chunk);
  // Looks at what is known of magic and version before the header is whole.
  [[nodiscard]] Refusal check_start() const;
  [[nodiscard]] Refusal check_header() const;
  [[nodiscard]] std::uint64_t word(std::size_t index) const;

  std::size_t limit_;
  std::uint64_t next_sequence_ = 0;
  bool yielded_ = false;  // bytes_ hold the frame that was yielded last.
  Refusal refusal_ = Refusal::kNone;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace areal::host
