// Packed blocks give back exactly what went in, and refuse what is no block.
#include "replay/record/block_codec.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

constexpr std::uint64_t kHuge = ~std::uint64_t{0};

void expect_round_trip(const std::vector<port::TraceEvent>& events) {
  record::BlockEncoder encoder;
  LineCollector before;
  for (const port::TraceEvent& event : events) encoder.on_event(event), before.on_event(event);
  LineCollector after;
  ASSERT_TRUE(record::decode_block(encoder.bytes(), encoder.lines(), after));
  EXPECT_EQ(before.lines, after.lines);
}

TEST(BlockCodec, OddValuesSurvive) {
  port::TraceEvent event{.seq = kHuge,
                         .cause = 5,
                         .lamport = kHuge,
                         .at = {-1},
                         .node = {kHuge},
                         .incarnation = ~0U,
                         .slot = {kHuge},
                         .what = port::TraceWhat::kFault,
                         .rule = ~0U,
                         .record = {},
                         .body = {}};
  event.record = {.kind = 0xFFFF, .size = kMaxRecordWords, .words = {}};
  for (std::size_t i = 0; i < kMaxRecordWords; ++i) event.record.words[i] = mix_words(i, 3);
  event.body = event.record;
  port::TraceEvent next = event;
  next.seq = 0;
  next.at.ns = INT64_MIN;
  next.record.words[0] = 0;
  expect_round_trip({event, next, event, {}, next});
}

TEST(BlockCodec, EveryCauseSurvives) {
  std::vector<port::TraceEvent> events;
  for (const std::uint64_t seq : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, kHuge - 1, kHuge}) {
    for (const std::uint64_t cause : {std::uint64_t{0}, std::uint64_t{1}, seq - 1, seq, seq + 1, seq + 2, kHuge}) {
      port::TraceEvent event;
      event.seq = seq;
      event.cause = cause;
      events.push_back(event);
    }
  }
  expect_round_trip(events);
}

// Ids that fold to one slot of the memory must not change each other's values.
TEST(BlockCodec, IdsThatShareMemorySurvive) {
  record::BlockEncoder encoder;
  LineCollector before;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const NodeId node{i * record::BlockMemory::kNodes};
    const port::Decision decision{static_cast<std::uint32_t>(i * 256), i, i + 1, i};
    for (port::TraceSink* sink : {static_cast<port::TraceSink*>(&encoder), static_cast<port::TraceSink*>(&before)}) {
      port::TraceEvent event;
      event.seq = i + 1;
      event.node = node;
      event.lamport = i * 3;
      sink->on_event(event);
      sink->on_state(node, SlotId{i % 9}, {i / 2, 1});
      sink->on_decision(decision);
    }
  }
  LineCollector after;
  ASSERT_TRUE(record::decode_block(encoder.bytes(), encoder.lines(), after));
  EXPECT_EQ(before.lines, after.lines);
}

// A block may have more shapes of lines than the encoder remembers: then they are written again.
TEST(BlockCodec, MoreShapesThanAreRememberedSurvive) {
  std::vector<port::TraceEvent> events;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    port::TraceEvent event;
    event.seq = i + 1;
    event.record.kind = static_cast<KindId>(0x0F00 + i % 3);
    event.record.size = static_cast<std::uint8_t>(i % (kMaxRecordWords + 1));
    for (std::size_t k = 0; k < event.record.size; ++k) {
      if ((mix_words(i, 5) >> k & 1) != 0) event.record.words[k] = mix_words(i, k) >> (i % 64);
    }
    events.push_back(event);
  }
  expect_round_trip(events);
}

// A digest in a record takes eight bytes a word and not ten, and stands where zstd need not look for patterns.
TEST(BlockCodec, WholeWordsAreApart) {
  record::BlockEncoder encoder;
  port::TraceEvent event;
  event.record = {.kind = 0x0F01, .size = 4, .words = {}};
  for (std::uint64_t i = 1; i <= 100; ++i) {
    event.seq = i;
    for (std::size_t k = 0; k < 4; ++k) event.record.words[k] = mix_words(i, k);
    encoder.on_event(event);
  }
  const std::size_t all = encoder.bytes().size();
  EXPECT_GE(all - encoder.packable_bytes(), 100U * 4 * 8 - 8 * 8);
  EXPECT_LE(encoder.packable_bytes(), 1000U);
}

// Words whose difference is at the limits of what is written as one.
TEST(BlockCodec, DifferencesOfEverySizeSurvive) {
  std::vector<port::TraceEvent> events;
  std::uint64_t word = 0;
  for (int bits = 0; bits < 64; ++bits) {
    for (const std::int64_t by : {-1, 0, 1}) {
      for (const bool down : {false, true}) {
        const std::uint64_t distance = (std::uint64_t{1} << bits) + static_cast<std::uint64_t>(by);
        word = down ? word - distance : word + distance;
        port::TraceEvent event;
        event.seq = events.size() + 1;
        event.record = {.kind = 0x0F01, .size = 1, .words = {word}};
        events.push_back(event);
      }
    }
  }
  expect_round_trip(events);
}

TEST(BlockCodec, EveryCutAndLineCountIsRefused) {
  record::BlockEncoder encoder;
  SyntheticRun run(encoder);
  for (int i = 0; i < 5; ++i) run.step();
  run.update(1);
  LineCollector sink;
  for (std::size_t size = 0; size < encoder.bytes().size(); ++size) {
    EXPECT_FALSE(record::decode_block(encoder.bytes().first(size), encoder.lines(), sink)) << size;
  }
  EXPECT_FALSE(record::decode_block(encoder.bytes(), encoder.lines() - 1, sink));
  EXPECT_FALSE(record::decode_block(encoder.bytes(), encoder.lines() + 1, sink));
}

// A damaged block may decode to something else (the chain finds that), but it never reads or loops out of bounds.
TEST(BlockCodec, EveryFlippedByteIsSurvived) {
  record::BlockEncoder encoder;
  SyntheticRun run(encoder);
  for (int i = 0; i < 5; ++i) run.step();
  run.update(1);
  std::vector<std::uint8_t> bytes(encoder.bytes().begin(), encoder.bytes().end());
  for (std::uint8_t& byte : bytes) {
    for (const std::uint8_t mask : std::array<std::uint8_t, 3>{0x01, 0x80, 0xFF}) {
      byte ^= mask;
      LineCollector sink;
      static_cast<void>(record::decode_block(bytes, encoder.lines(), sink));
      EXPECT_LE(sink.lines.size(), encoder.lines());
      byte ^= mask;
    }
  }
}

}  // namespace
}  // namespace areal::testing
