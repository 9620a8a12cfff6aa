// Frames are cut from any chunks, and everything else is refused early, by name and within the bound.
#include "engine/real/host/frame_codec.h"

#include <gtest/gtest.h>

#include "engine/base/rng.h"
#include "engine/real/host/message_codec.h"

namespace areal::host {
namespace {

std::vector<std::uint8_t> payload_of(std::size_t size, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.draw_u64());
  return bytes;
}

std::vector<std::uint8_t> frame_of(std::size_t payload_bytes, std::uint64_t sequence) {
  const auto payload = payload_of(payload_bytes, sequence + 1);
  std::vector<std::uint8_t> bytes;
  append_frame({FrameKind::kMessage, sequence, payload}, bytes);
  return bytes;
}

// The refusal of a reader that gets `bytes` at once.
Refusal refusal_of(std::span<const std::uint8_t> bytes, std::size_t limit = kMaxPayloadBytes) {
  FrameReader reader(limit);
  while (reader.next(bytes).has_value()) {
  }
  return reader.refusal();
}

TEST(FrameReader, AnyChunksGiveTheSameFrames) {
  const std::vector<std::size_t> sizes{0, 1, 31, 32, 33, 4096, kMaxPayloadBytes};
  std::vector<std::uint8_t> stream;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    append_frame({FrameKind::kMessage, i, payload_of(sizes[i], i + 1)}, stream);
  }
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Rng rng(seed);
    FrameReader reader;
    std::size_t found = 0;
    for (std::span<const std::uint8_t> rest = stream; !rest.empty();) {
      const std::uint64_t bound = seed == 0 ? 1 : 9000;
      const std::size_t size = std::min<std::size_t>(rest.size(), 1 + rng.draw_below(bound));
      std::span<const std::uint8_t> chunk = rest.first(size);
      rest = rest.subspan(size);
      while (!chunk.empty()) {
        const auto frame = reader.next(chunk);
        if (!frame) continue;
        ASSERT_LT(found, sizes.size());
        EXPECT_EQ(frame->sequence, found);
        EXPECT_TRUE(std::ranges::equal(frame->payload, payload_of(sizes[found], found + 1)));
        ++found;
      }
    }
    EXPECT_EQ(found, sizes.size());
    EXPECT_EQ(reader.refusal(), Refusal::kNone);
    EXPECT_LE(reader.held_bytes(), kFrameHeaderBytes + kMaxPayloadBytes);
  }
}

TEST(FrameReader, EachFaultHasItsName) {
  const auto good = frame_of(40, 0);
  EXPECT_EQ(refusal_of(good), Refusal::kNone);
  const auto with = [&good](std::size_t at, std::uint8_t value) {
    auto bytes = good;
    bytes[at] = value;
    return refusal_of(bytes);
  };
  EXPECT_EQ(with(0, 'G'), Refusal::kBadMagic);
  EXPECT_EQ(with(4, 2), Refusal::kBadVersion);
  EXPECT_EQ(with(6, 5), Refusal::kBadKind);
  EXPECT_EQ(with(7, 1), Refusal::kBadKind);
  EXPECT_EQ(with(15, 0x80), Refusal::kTooLong);
  EXPECT_EQ(with(16, 1), Refusal::kOutOfOrder);
  EXPECT_EQ(with(24, static_cast<std::uint8_t>(good[24] ^ 1)), Refusal::kBadChecksum);
  EXPECT_EQ(with(40, static_cast<std::uint8_t>(good[40] ^ 1)), Refusal::kBadChecksum);
  EXPECT_EQ(with(6, 0), Refusal::kBadChecksum);  // Another kind, under this one's checksum.
}

TEST(FrameReader, RepeatedAndSkippedFramesAreOutOfOrder) {
  auto repeated = frame_of(8, 0);
  const auto again = repeated;
  repeated.insert(repeated.end(), again.begin(), again.end());
  EXPECT_EQ(refusal_of(repeated), Refusal::kOutOfOrder);
  EXPECT_EQ(refusal_of(frame_of(8, 1)), Refusal::kOutOfOrder);
}

// A stranger who sends a line of text and waits must not hold a connection until the deadline.
TEST(FrameReader, RefusesBeforeTheHeaderIsWhole) {
  const std::string_view text = "GET ";
  EXPECT_EQ(refusal_of({reinterpret_cast<const std::uint8_t*>(text.data()), 1}), Refusal::kBadMagic);
  auto later = frame_of(0, 0);
  later[4] = 9;
  EXPECT_EQ(refusal_of(std::span(later).first(5)), Refusal::kBadVersion);
}

TEST(FrameReader, TooLongIsRefusedFromTheHeaderAlone) {
  const auto bytes = frame_of(257, 0);
  EXPECT_EQ(refusal_of(std::span(bytes).first(kFrameHeaderBytes), 256), Refusal::kTooLong);
  FrameReader reader(256);
  std::span<const std::uint8_t> chunk = bytes;
  EXPECT_FALSE(reader.next(chunk).has_value());
  EXPECT_LE(reader.held_bytes(), kFrameHeaderBytes);
}

TEST(FrameReader, ARefusalIsFinal) {
  FrameReader reader;
  auto bad = frame_of(8, 0);
  bad[0] = 0;
  std::span<const std::uint8_t> chunk = bad;
  EXPECT_FALSE(reader.next(chunk).has_value());
  const auto good = frame_of(8, 0);
  chunk = good;
  EXPECT_FALSE(reader.next(chunk).has_value());
  EXPECT_EQ(reader.refusal(), Refusal::kBadMagic);
}

WireMessage sample_message() {
  WireMessage message{.from = {3}, .from_incarnation = 2, .from_slot = {1}, .seq = 77, .lamport = 91};
  message.send = {.to = {4}, .to_slot = {5}, .kind = port::MessageKind::kRequest, .request = {6}};
  message.send.body = to_record(port::StorePut{.op = {8}, .key = 9, .expected = {1, 2}, .value = {3, 4}});
  return message;
}

TEST(MessageCodec, EveryFieldComesBack) {
  const WireMessage message = sample_message();
  const auto bytes = encode_message(message);
  EXPECT_LE(bytes.size(), 256U);
  const auto back = decode_message(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->seq, 77U);
  EXPECT_EQ(back->lamport, 91U);
  EXPECT_EQ(back->send.to, NodeId{4});
  EXPECT_EQ(back->send.to_slot, SlotId{5});
  const port::MessageIn input = message_input(*back);
  EXPECT_EQ(input.from, message.from);
  EXPECT_EQ(input.from_incarnation, message.from_incarnation);
  EXPECT_EQ(input.from_slot, message.from_slot);
  EXPECT_EQ(input.kind, message.send.kind);
  EXPECT_EQ(input.request, message.send.request);
  EXPECT_EQ(input.body, message.send.body);
  EXPECT_EQ(encode_message(*back), bytes);
}

TEST(MessageCodec, OtherBytesAreNoMessage) {
  const auto good = encode_message(sample_message());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_message(std::span(good).first(size)).has_value()) << size;
  }
  auto longer = good;
  longer.resize(good.size() + 8);
  EXPECT_FALSE(decode_message(longer).has_value());
  const auto with = [&good](std::size_t at, std::uint8_t value) {
    auto bytes = good;
    bytes[at] = value;
    return decode_message(bytes).has_value();
  };
  constexpr std::size_t kSend = 5 * 8;  // The head of the send record, then its words: to, slot, kind, request.
  constexpr std::size_t kBody = kSend + 5 * 8;
  EXPECT_FALSE(with(8 + 4, 1));          // An incarnation of 33 bits.
  EXPECT_FALSE(with(kSend, 2));          // Another effect than a send.
  EXPECT_FALSE(with(kSend + 7, 1));      // Bits beside the record's head.
  EXPECT_FALSE(with(kSend + 3 * 8, 3));  // No such kind of message.
  EXPECT_FALSE(with(kBody + 2, 200));    // More words than a record has.
  EXPECT_TRUE(with(kBody + 8, 200));     // Another value of a body's word is for the protocol to judge.
  WireMessage empty = sample_message();
  empty.send.body = {};
  EXPECT_FALSE(decode_message(encode_message(empty)).has_value());
}

}  // namespace
}  // namespace areal::host
