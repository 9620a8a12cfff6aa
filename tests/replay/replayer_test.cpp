// A run is compared with its recording line by line; the first line that differs is named, wherever it lies.
#include "replay/analyse/replayer.h"

#include <gtest/gtest.h>

#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

using analyse::ReplayComparer;
constexpr int kSteps = 400;  // 1,200 events.
constexpr std::array<ReplayComparer::Ahead, 2> kAheads{ReplayComparer::Ahead::kNever, ReplayComparer::Ahead::kAlways};

// Passes a run on, with one bit of one event, state or decision changed.
class Flip : public port::TraceSink {
 public:
  Flip(port::TraceSink& to, std::uint64_t event, std::uint64_t state, std::uint64_t decision)
      : to_(to), event_(event), state_(state), decision_(decision) {}

  void on_event(const port::TraceEvent& event) override {
    port::TraceEvent changed = event;
    if (event.seq == event_) changed.record.words[changed.record.size - 1U] ^= std::uint64_t{1} << 41;
    to_.on_event(changed);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    Digest128 changed = digest;
    if (++states_ == state_) changed.high ^= std::uint64_t{1} << 63;
    to_.on_state(node, slot, changed);
  }
  void on_stream(std::uint32_t stream, std::string_view name) override { to_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override {
    port::Decision changed = decision;
    if (++decisions_ == decision_) changed.bound ^= 1;
    to_.on_decision(changed);
  }

 private:
  port::TraceSink& to_;
  std::uint64_t event_, state_, decision_;
  std::uint64_t states_ = 0;
  std::uint64_t decisions_ = 0;
};

void play(port::TraceSink& sink, int steps = kSteps) {
  SyntheticRun run(sink);
  for (int i = 0; i < steps; ++i) run.step();
}

class Replayer : public ::testing::TestWithParam<ReplayComparer::Ahead> {
 protected:
  Replayer() : file_("replayed.db") {
    const auto recorder = open_recorder(file_.path(), {.block_events = 64});
    play(*recorder);
    AREAL_CHECK(recorder->finish({.verdict = "held", .counts = {}}).has_value());
    auto reader = record::RunReader::open(file_.path());
    AREAL_CHECK(reader.has_value());
    reader_ = std::move(*reader);
  }

  ScratchFile file_;
  std::unique_ptr<record::RunReader> reader_;
};

TEST_P(Replayer, EqualRunIsEqual) {
  ReplayComparer comparer(*reader_, GetParam());
  LineCollector lines;
  play(comparer);
  play(lines);
  comparer.finish();
  EXPECT_FALSE(comparer.difference());
  EXPECT_EQ(comparer.error(), "");
  EXPECT_EQ(comparer.compared(), lines.lines.size());
}

TEST_P(Replayer, FlippedBitOfAnEventIsNamedByItsNumber) {
  for (const std::uint64_t seq : {1U, 2U, 63U, 64U, 65U, 128U, 500U, 777U, 1199U, 1200U}) {
    ReplayComparer comparer(*reader_, GetParam());
    Flip flip(comparer, seq, 0, 0);
    play(flip);
    comparer.finish();
    ASSERT_TRUE(comparer.difference()) << seq;
    EXPECT_EQ(comparer.difference()->seq, seq);
    EXPECT_NE(comparer.difference()->recorded, comparer.difference()->replayed);
    EXPECT_NE(comparer.difference()->recorded, "(end)");
    // The recorded line is that event's, found again.
    EXPECT_NE(comparer.difference()->recorded.find(" " + std::to_string(seq) + " "), std::string::npos)
        << comparer.difference()->recorded;
  }
}

TEST_P(Replayer, FlippedBitsOfStatesAndDecisionsAreFound) {
  for (const std::uint64_t which : {1U, 21U, 22U, 250U, 400U}) {
    for (const bool is_state : {true, false}) {
      ReplayComparer comparer(*reader_, GetParam());
      Flip flip(comparer, 0, is_state ? which : 0, is_state ? 0 : which);
      play(flip);
      ASSERT_TRUE(comparer.difference()) << which;
      const std::uint64_t seq = comparer.difference()->seq;
      // A step is three events, a state and one or two decisions.
      EXPECT_TRUE(!is_state || seq == which * 3) << seq;
      EXPECT_LE(seq, which * 3);
    }
  }
}

TEST_P(Replayer, ShorterAndLongerRunsDiffer) {
  for (const int steps : {0, 1, kSteps - 1, kSteps + 1}) {
    ReplayComparer comparer(*reader_, GetParam());
    play(comparer, steps);
    comparer.finish();
    ASSERT_TRUE(comparer.difference()) << steps;
    const auto& difference = *comparer.difference();
    EXPECT_EQ(steps < kSteps ? difference.replayed : difference.recorded, "(end)") << steps;
    EXPECT_NE(steps < kSteps ? difference.recorded : difference.replayed, "(end)") << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(Ahead, Replayer, ::testing::ValuesIn(kAheads));

TEST(ReplayerOfTruncated, WhatItHasIsCompared) {
  const ScratchFile file("replayed_truncated.db");
  {
    const auto recorder = open_recorder(file.path(), {.block_events = 64});
    play(*recorder, 100);
  }
  const auto reader = record::RunReader::open(file.path());
  ASSERT_TRUE(reader);
  for (const ReplayComparer::Ahead ahead : kAheads) {
    ReplayComparer longer(**reader, ahead);
    play(longer, 200);
    EXPECT_FALSE(longer.difference());
    EXPECT_GT(longer.compared(), 400U);
    ReplayComparer other(**reader, ahead);
    Flip flip(other, 299, 0, 0);
    play(flip, 200);
    ASSERT_TRUE(other.difference());
    EXPECT_EQ(other.difference()->seq, 299U);
  }
}

}  // namespace
}  // namespace areal::testing
