#include "engine/real/host/frame_codec.h"

#include <algorithm>

#include "engine/base/bytes.h"
#include "engine/base/check.h"
#include "engine/base/digest.h"

namespace areal::host {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kVersionEnd = 6;

std::uint64_t first_word(FrameKind kind) {
  return std::uint64_t{kFrameMagic} | (std::uint64_t{kFrameVersion} << 32) | (static_cast<std::uint64_t>(kind) << 48);
}

std::uint64_t checksum(const std::array<std::uint64_t, 3>& header, std::span<const std::uint8_t> payload) {
  return hash_bytes(payload, hash_words(header).low).low;
}

}  // namespace

std::array<std::uint8_t, 24> header_bytes(FrameKind kind, std::uint64_t payload_bytes, std::uint64_t sequence) {
  ByteWriter writer;
  writer.u64(first_word(kind));
  writer.u64(payload_bytes);
  writer.u64(sequence);
  std::array<std::uint8_t, 24> bytes{};
  std::ranges::copy(writer.view(), bytes.begin());
  return bytes;
}

void append_frame(const Frame& frame, std::vector<std::uint8_t>& out) {
  AREAL_CHECK(frame.payload.size() <= kMaxPayloadBytes);
  const std::array<std::uint64_t, 3> header{first_word(frame.kind), frame.payload.size(), frame.sequence};
  ByteWriter writer;
  for (const std::uint64_t word : header) writer.u64(word);
  writer.u64(checksum(header, frame.payload));
  out.reserve(out.size() + kFrameHeaderBytes + frame.payload.size());
  out.insert(out.end(), writer.view().begin(), writer.view().end());
  out.insert(out.end(), frame.payload.begin(), frame.payload.end());
}

FrameReader::FrameReader(std::size_t limit) : limit_(limit) { AREAL_CHECK(limit <= kMaxPayloadBytes); }

void FrameReader::set_limit(std::size_t limit) {
  AREAL_CHECK(limit <= kMaxPayloadBytes);
  limit_ = limit;
}

std::uint64_t FrameReader::word(std::size_t index) const {
  return ByteReader(std::span(bytes_).subspan(index * 8)).u64();
}

bool FrameReader::fill(std::size_t size, std::span<const std::uint8_t>& chunk) {
  const std::size_t missing = size > bytes_.size() ? size - bytes_.size() : 0;
  const auto taken = chunk.first(std::min(missing, chunk.size()));
  bytes_.insert(bytes_.end(), taken.begin(), taken.end());
  chunk = chunk.subspan(taken.size());
  return bytes_.size() >= size;
}

Refusal FrameReader::check_start() const {
  for (std::size_t i = 0; i < std::min(bytes_.size(), kVersionEnd); ++i) {
    if (bytes_[i] == static_cast<std::uint8_t>(first_word(FrameKind{}) >> (8 * i))) continue;
    return i < kMagicBytes ? Refusal::kBadMagic : Refusal::kBadVersion;
  }
  return Refusal::kNone;
}

Refusal FrameReader::check_header() const {
  if ((word(0) >> 48) >= enum_names(FrameKind{}).size()) return Refusal::kBadKind;
  if (word(1) > limit_) return Refusal::kTooLong;
  if (word(2) != next_sequence_) return Refusal::kOutOfOrder;
  return Refusal::kNone;
}

std::optional<Frame> FrameReader::next(std::span<const std::uint8_t>& chunk) {
  if (refusal_ != Refusal::kNone) return std::nullopt;
  if (yielded_) bytes_.clear();
  yielded_ = false;
  if (bytes_.size() < kFrameHeaderBytes) {
    bytes_.reserve(kFrameHeaderBytes);
    const bool is_whole = fill(kFrameHeaderBytes, chunk);
    refusal_ = check_start();
    if (refusal_ != Refusal::kNone || !is_whole) return std::nullopt;
    refusal_ = check_header();
    if (refusal_ != Refusal::kNone) return std::nullopt;
    bytes_.reserve(kFrameHeaderBytes + word(1));
  }
  if (!fill(kFrameHeaderBytes + word(1), chunk)) return std::nullopt;
  const auto payload = std::span<const std::uint8_t>(bytes_).subspan(kFrameHeaderBytes);
  if (word(3) != checksum({word(0), word(1), word(2)}, payload)) {
    refusal_ = Refusal::kBadChecksum;
    return std::nullopt;
  }
  yielded_ = true;
  return Frame{static_cast<FrameKind>(word(0) >> 48), next_sequence_++, payload};
}

}  // namespace areal::host
