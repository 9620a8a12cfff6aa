// The log that a cause chain is read from.
#include "sim/cli/cause_log.h"

#include <gtest/gtest.h>

namespace areal::cli {
namespace {

// Event `seq`, caused by the one half as far, with as many words as its number allows.
port::TraceEvent event_of(std::uint64_t seq) {
  port::TraceEvent event;
  event.seq = seq;
  event.cause = seq / 2;
  event.node = {seq % 7};
  event.rule = static_cast<std::uint32_t>(seq % 3);
  event.record.kind = static_cast<KindId>(seq % 100 + 1);
  event.record.size = static_cast<std::uint8_t>(seq % (kMaxRecordWords + 1));
  event.body.kind = static_cast<KindId>(seq % 2);
  event.body.size = static_cast<std::uint8_t>(seq % 2 * (seq % 5));
  for (std::size_t i = 0; i < kMaxRecordWords; ++i) event.record.words[i] = event.body.words[i] = seq * 31 + i;
  return event;
}

TEST(CauseLog, FollowsCausesBackThroughManyPieces) {
  CauseLog log;
  constexpr std::uint64_t kEvents = 50'000;  // About eight pieces.
  for (std::uint64_t seq = 1; seq <= kEvents; ++seq) log.on_event(event_of(seq));
  std::uint64_t wanted = kEvents;
  for (const CauseLog::Cause& cause : log.chain(kEvents, 100)) {
    EXPECT_EQ(cause.seq, wanted);
    EXPECT_EQ(cause.node, event_of(wanted).node);
    EXPECT_EQ(cause.record, event_of(wanted).record);
    EXPECT_EQ(cause.body, event_of(wanted).body);
    EXPECT_EQ(cause.rule, event_of(wanted).rule);
    wanted /= 2;
  }
  EXPECT_EQ(wanted, 0U);
  EXPECT_EQ(log.chain(kEvents, 3).size(), 3U);
  EXPECT_TRUE(log.chain(kEvents + 1, 3).empty());
}

TEST(CauseLog, KeepsNothingBehindAGap) {
  CauseLog log;
  log.on_event(event_of(1));
  log.on_event(event_of(3));
  EXPECT_EQ(log.chain(1, 8).size(), 1U);
  EXPECT_TRUE(log.chain(3, 8).empty());
}

}  // namespace
}  // namespace areal::cli
