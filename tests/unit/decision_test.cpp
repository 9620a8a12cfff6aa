// Decisions: named streams, harmless zeros, recordings forced back.
#include "sim/kernel/decision.h"

#include <gtest/gtest.h>

namespace areal::sim {
namespace {

// Keeps what a recording would hold.
class Recorder : public port::TraceSink {
 public:
  void on_event(const port::TraceEvent& /*event*/) override {}
  void on_state(NodeId /*node*/, SlotId /*slot*/, const Digest128& /*digest*/) override {}
  void on_stream(std::uint32_t stream, std::string_view name) override {
    EXPECT_EQ(stream, recorded.streams.size());
    recorded.streams.emplace_back(name);
  }
  void on_decision(const port::Decision& decision) override { recorded.decisions.push_back(decision); }
  RecordedDecisions recorded;
};

const StreamKey kDelay{"net.delay", {3}, {7}};
const StreamKey kCoin{"fault.active", {1}, {}};

std::vector<std::uint64_t> draw_many(Decisions& decisions, const StreamKey& key, int count, Recorder& sink) {
  std::vector<std::uint64_t> chosen;
  for (int i = 0; i < count; ++i) chosen.push_back(decisions.draw_below(key, 1000, sink));
  return chosen;
}

TEST(Decisions, StreamsAreNamedByWhatTheyDecide) {
  Recorder sink;
  Decisions decisions(1);
  decisions.draw_below(kDelay, 10, sink);
  decisions.draw_below(kCoin, 2, sink);
  decisions.draw_below({"route", {}, {}}, 2, sink);
  decisions.draw_below(kDelay, 10, sink);
  EXPECT_EQ(sink.recorded.streams, (std::vector<std::string>{"net.delay.3-7", "fault.active.1", "route"}));
  ASSERT_EQ(sink.recorded.decisions.size(), 4U);
  EXPECT_EQ(sink.recorded.decisions[3].stream, 0U);
  EXPECT_EQ(sink.recorded.decisions[3].ordinal, 1U);
  EXPECT_EQ(sink.recorded.decisions[3].bound, 10U);
}

// One more draw somewhere must not move any other stream, or old seeds lose their meaning.
TEST(Decisions, AStreamDoesNotFeelTheOthers) {
  Recorder sink;
  Recorder other_sink;
  Decisions alone(5);
  Decisions mixed(5);
  const std::vector<std::uint64_t> expected = draw_many(alone, kDelay, 20, sink);
  draw_many(mixed, {"net.delay", {7}, {3}}, 3, other_sink);
  draw_many(mixed, kCoin, 4, other_sink);
  EXPECT_EQ(draw_many(mixed, kDelay, 20, other_sink), expected);
  Decisions other_seed(6);
  EXPECT_NE(draw_many(other_seed, kDelay, 20, sink = {}), expected);
}

// A change of these numbers takes the meaning of every seed that was ever noted down.
TEST(Decisions, GoldenNumbers) {
  Recorder sink;
  Decisions decisions(42);
  EXPECT_EQ(draw_many(decisions, kDelay, 4, sink), (std::vector<std::uint64_t>{776, 203, 70, 667}));
}

TEST(Decisions, ChoiceZeroNeverHappens) {
  Recorder sink;
  Decisions decisions(7);
  int happened = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool happens = decisions.draw_chance(kCoin, {1, 4}, sink);
    EXPECT_TRUE(!happens || sink.recorded.decisions.back().chosen != 0);
    happened += happens ? 1 : 0;
  }
  EXPECT_NEAR(happened, 2'500, 150);
}

TEST(Decisions, WhatIsCertainIsNoChoice) {
  Recorder sink;
  Decisions decisions(7);
  EXPECT_FALSE(decisions.draw_chance(kCoin, {0, 4}, sink));
  EXPECT_TRUE(decisions.draw_chance(kCoin, {4, 4}, sink));
  EXPECT_EQ(decisions.draw_below(kCoin, 1, sink), 0U);
  EXPECT_TRUE(sink.recorded.streams.empty());
  EXPECT_TRUE(sink.recorded.decisions.empty());
}

TEST(Decisions, ARecordingComesBackUnderAnotherSeed) {
  Recorder sink;
  Decisions first(1);
  const std::vector<std::uint64_t> expected = draw_many(first, kDelay, 10, sink);
  Recorder again_sink;
  Decisions again(2);
  again.force(sink.recorded, Beyond::kHarmless);
  EXPECT_EQ(draw_many(again, kDelay, 10, again_sink), expected);
  EXPECT_EQ(again.misfit(), "");
  EXPECT_EQ(again.leftover(), "");
  EXPECT_EQ(again_sink.recorded.decisions.size(), sink.recorded.decisions.size());
}

TEST(Decisions, TheFirstMisfitIsNamed) {
  Recorder sink;
  Decisions first(1);
  draw_many(first, kDelay, 3, sink);
  draw_many(first, kCoin, 2, sink);

  Recorder out;
  Decisions other_bound(1);
  other_bound.force(sink.recorded, Beyond::kHarmless);
  other_bound.draw_below(kDelay, 1000, out);
  other_bound.draw_below(kDelay, 999, out);
  EXPECT_EQ(other_bound.misfit(),
            "stream net.delay.3-7 has the bound 1000 at choice 1 in the recording and is asked with 999");
  EXPECT_EQ(other_bound.leftover(), "stream fault.active.1 has 2 choices in the recording and was asked for 0");

  Decisions longer(1);
  longer.force(sink.recorded, Beyond::kHarmless);
  draw_many(longer, kDelay, 3, out = {});
  EXPECT_EQ(longer.draw_below(kDelay, 1000, out), 0U);
  EXPECT_EQ(longer.misfit(), "stream net.delay.3-7 has 3 choices in the recording and is asked for more");

  Decisions renamed(1);
  renamed.force(sink.recorded, Beyond::kHarmless);
  EXPECT_EQ(renamed.draw_below({"net.lag", {3}, {7}}, 1000, out = {}), 0U);
  renamed.draw_below({"net.other", {}, {}}, 1000, out);
  EXPECT_EQ(renamed.misfit(), "stream net.lag.3-7 is not in the recording");
}

// A replay that goes on where the recording ends sees what the seed would have shown.
TEST(Decisions, BeyondTheRecordingTheSeedGoesOn) {
  Recorder sink;
  Decisions whole(9);
  const std::vector<std::uint64_t> expected = draw_many(whole, kDelay, 10, sink);
  sink.recorded.decisions.resize(4);
  Recorder out;
  Decisions part(9);
  part.force(sink.recorded, Beyond::kDraw);
  EXPECT_EQ(draw_many(part, kDelay, 10, out), expected);
}

TEST(Decisions, WordsAndBackGiveTheSameFuture) {
  Recorder sink;
  Decisions decisions(3);
  draw_many(decisions, kDelay, 5, sink);
  draw_many(decisions, kCoin, 2, sink);
  StateWriter words;
  decisions.save(words);
  Decisions back;
  StateReader reader(words.words());
  ASSERT_TRUE(back.load(reader));
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(back.total(), 7U);
  Recorder names;
  back.announce(names);
  EXPECT_EQ(names.recorded.streams, sink.recorded.streams);
  const auto again = draw_many(back, kDelay, 5, names);
  const auto first = draw_many(decisions, kDelay, 5, sink);
  EXPECT_EQ(again, first);
}

}  // namespace
}  // namespace areal::sim
