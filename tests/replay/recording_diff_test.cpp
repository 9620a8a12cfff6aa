// The diff names the first line and field that differ, wherever in the run it lies.
#include "replay/analyse/recording_diff.h"

#include <gtest/gtest.h>

#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

// Passes lines on, except that it changes one of them.
class Changer : public port::TraceSink {
 public:
  explicit Changer(port::TraceSink& to) : to_(to) {}

  std::uint64_t event_seq = 0;     // Changes timer or effect word 0 of this event.
  std::uint64_t time_seq = 0;      // Moves this event by 1 ns.
  std::uint64_t state_after = 0;   // Changes the first state after this event.
  std::uint64_t choice_after = 0;  // Changes the first decision after this event.
  std::uint64_t end_after = UINT64_MAX;

  void on_event(const port::TraceEvent& event) override {
    seq_ = event.seq;
    if (seq_ > end_after) return;
    port::TraceEvent changed = event;
    if (seq_ == event_seq) changed.record.words[0] += 1;
    if (seq_ == time_seq) changed.at.ns += 1;
    to_.on_event(changed);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    if (seq_ > end_after) return;
    const bool changes = state_after != 0 && seq_ >= state_after;
    if (changes) state_after = 0;
    to_.on_state(node, slot, {digest.high, digest.low + (changes ? 1 : 0)});
  }
  void on_stream(std::uint32_t stream, std::string_view name) override { to_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override {
    if (seq_ > end_after) return;
    port::Decision changed = decision;
    if (choice_after != 0 && seq_ >= choice_after) changed.chosen ^= 1, choice_after = 0;
    to_.on_decision(changed);
  }

 private:
  port::TraceSink& to_;
  std::uint64_t seq_ = 0;
};

class RecordingDiff : public ::testing::Test {
 protected:
  static constexpr int kSteps = 400;

  template <class Change>
  analyse::RecordingDiff diff(Change&& change, std::uint64_t right_block_events = 64) {
    const ScratchFile left_file("diff_left.db");
    const ScratchFile right_file("diff_right.db");
    record(left_file.path(), [](Changer&) {}, 64);
    record(right_file.path(), change, right_block_events);
    const auto left = record::RunReader::open(left_file.path());
    const auto right = record::RunReader::open(right_file.path());
    EXPECT_TRUE(left);
    EXPECT_TRUE(right);
    auto found = analyse::diff_recordings(**left, **right);
    EXPECT_TRUE(found);
    return *found;
  }

  template <class Change>
  static void record(const std::string& path, Change&& change, std::uint64_t block_events) {
    const auto recorder = open_recorder(path, {.block_events = block_events});
    Changer changer(*recorder);
    change(changer);
    SyntheticRun run(changer);
    for (int i = 0; i < kSteps; ++i) run.step();
    EXPECT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  }
};

TEST_F(RecordingDiff, EqualRunsAreEqual) {
  const analyse::RecordingDiff found = diff([](Changer&) {});
  EXPECT_TRUE(found.equal);
  EXPECT_TRUE(found.heads.empty());
  EXPECT_EQ(to_text(found), "equal\n");
}

// At the edges of blocks, in the middle, at both ends of the run; with blocks that are cut alike and not.
TEST_F(RecordingDiff, NamesEventAndField) {
  for (const std::uint64_t block_events : {64U, 50U}) {
    for (const std::uint64_t seq : {1U, 2U, 64U, 65U, 128U, 500U, 1000U, 1150U, 1200U}) {
      const analyse::RecordingDiff found = diff([seq](Changer& changer) { changer.event_seq = seq; }, block_events);
      ASSERT_FALSE(found.equal) << seq;
      EXPECT_EQ(found.seq, seq);
      ASSERT_EQ(found.fields.size(), 1U) << to_text(found);
      const bool is_timer = seq % 3 == 1;
      EXPECT_EQ(found.fields[0].name, is_timer || seq % 3 == 2 ? "record.timer" : "record.to") << seq;
      EXPECT_NE(found.fields[0].left, found.fields[0].right);
      EXPECT_EQ(found.last_common.empty(), seq == 1);
      EXPECT_EQ(found.ancestors.empty(), seq == 1) << seq;
      EXPECT_LE(found.ancestors.size(), analyse::kMaxAncestors);
      if (seq >= 128) {
        EXPECT_EQ(found.ancestors.size(), analyse::kMaxAncestors);
      }
    }
  }
}

TEST_F(RecordingDiff, NamesTime) {
  const analyse::RecordingDiff found = diff([](Changer& changer) { changer.time_seq = 333; });
  EXPECT_EQ(found.seq, 333U);
  ASSERT_EQ(found.fields.size(), 1U) << to_text(found);
  EXPECT_EQ(found.fields[0].name, "at_ns");
  EXPECT_NE(found.likely.find("clock"), std::string::npos);
}

TEST_F(RecordingDiff, NamesStateOfNodeAndSlot) {
  const analyse::RecordingDiff found = diff([](Changer& changer) { changer.state_after = 300; });
  EXPECT_EQ(found.seq, 300U);
  ASSERT_EQ(found.fields.size(), 1U);
  EXPECT_EQ(found.fields[0].name, "state.digest");
  EXPECT_FALSE(found.first_state.empty());
  EXPECT_NE(found.left.find(found.first_state), std::string::npos) << found.left << " / " << found.first_state;
}

TEST_F(RecordingDiff, NamesDecision) {
  const analyse::RecordingDiff found = diff([](Changer& changer) { changer.choice_after = 300; });
  EXPECT_EQ(found.seq, 300U);
  ASSERT_EQ(found.fields.size(), 1U);
  EXPECT_EQ(found.fields[0].name, "decision.chosen");
}

TEST_F(RecordingDiff, NamesTheEndOfTheShorterRun) {
  const analyse::RecordingDiff found = diff([](Changer& changer) { changer.end_after = 900; });
  EXPECT_EQ(found.seq, 901U);
  EXPECT_EQ(found.right, "(end)");
  EXPECT_FALSE(found.cursors.empty());
  EXPECT_NE(to_text(found).find("differ at event 901"), std::string::npos);
}

TEST_F(RecordingDiff, OtherSeedsAreNamedInTheHead) {
  const ScratchFile left_file("seed_left.db");
  const ScratchFile right_file("seed_right.db");
  record(left_file.path(), [](Changer&) {}, 64);
  record::RunInfo info = synthetic_info();
  info.seed = 7;
  auto recorder = record::Recorder::open(right_file.path(), info, synthetic_nodes(), synthetic_kinds());
  ASSERT_TRUE(recorder);
  SyntheticRun run(**recorder, 7);
  run.step();
  ASSERT_TRUE((*recorder)->finish({.verdict = "held", .counts = {}}));
  const auto found = analyse::diff_recordings(**record::RunReader::open(left_file.path()),
                                              **record::RunReader::open(right_file.path()));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->heads.size(), 1U);
  EXPECT_EQ(found->heads[0].name, "seed");
  EXPECT_EQ(found->heads[0].right, "7");
  EXPECT_EQ(found->likely, "the runs were not started alike");
}

}  // namespace
}  // namespace areal::testing
