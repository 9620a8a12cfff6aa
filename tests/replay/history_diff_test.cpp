// Histories are equal whatever the timing, and a difference is told by its subject in words.
#include "replay/analyse/history_diff.h"

#include <gtest/gtest.h>

#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

using analyse::History;
using analyse::HistoryDiff;
using analyse::HistorySection;
using port::FullReason;
using port::LeaseState;
using port::Outcome;
using port::UpdateMode;

constexpr NodeId kGateway{1};
constexpr NodeId kFirst{2};
constexpr NodeId kSecond{3};
constexpr HostId kHost{7};

// A run of three versions and two engines on one host, and what may be otherwise in it.
struct Story {
  std::uint64_t seed = 1;  // Of the times and of everything between.
  int steps = 2;           // Between any two notes.
  UpdateMode last_mode = UpdateMode::kDelta;
  bool failover = false;  // Version 2 needs a second attempt, in a new epoch.
  bool has_last_weights = true;
  int second_leases = 2;  // Of the second engine, one after the other.
  std::uint16_t ports = 20'000;
  bool second_first = false;   // Of the engines.
  bool port_returns = true;    // The second engine gets its own port again.
  bool last_version = true;    // The third version is tried at all.
  std::uint64_t bytes = 4096;  // Of a version.
};

class Teller {
 public:
  Teller(port::TraceSink& sink, const Story& story) : story_(story), run_(sink, story.seed) {}

  void tell() {
    if (story_.second_first) lease_second();
    lease(kFirst, 1, story_.ports, false);
    if (!story_.second_first) lease_second();
    version(1, 1, 1, UpdateMode::kFull, FullReason::kNotSeeded);
    if (story_.failover) {
      note(port::UpdateStarted{1, 2, 1, UpdateMode::kDelta, FullReason::kNone});
      note(port::UpdateEnded{1, 2, 1, Outcome::kPeerGone, kSecond});
      version(2, 2, 2, UpdateMode::kFull, FullReason::kPeerLost);
    } else {
      version(1, 2, 1, UpdateMode::kDelta, FullReason::kNone);
    }
    if (!story_.last_version) return;
    version(story_.failover ? 2 : 1, 3, 1, story_.last_mode, FullReason::kNone);
  }

 private:
  template <RecordType T>
  void note(const T& what) {
    for (int i = 0; i < story_.steps; ++i) run_.step();
    run_.note(kGateway, {1}, what);
  }
  void lease(NodeId holder, Incarnation incarnation, std::uint16_t port, bool ends) {
    note(port::LeaseChanged{kHost, port, LeaseState::kLeased, holder, 0});
    note(port::LeaseChanged{kHost, port, LeaseState::kBound, holder, incarnation});
    if (ends) note(port::LeaseChanged{kHost, port, LeaseState::kReleased, {}, 0});
  }
  void lease_second() {
    for (int i = 0; i < story_.second_leases; ++i) {
      const int port = story_.ports + 17 + (story_.port_returns ? 0 : i);
      lease(kSecond, 1, static_cast<std::uint16_t>(port), i + 1 < story_.second_leases);
    }
  }
  void version(Epoch epoch, Version version, Attempt attempt, UpdateMode mode, FullReason reason) {
    const Digest128 digest{.high = story_.seed, .low = version};
    note(port::UpdateStarted{epoch, version, attempt, mode, reason});
    note(port::UpdateEnded{epoch, version, attempt, Outcome::kOk, {}});
    const int receipts = version == 3 && !story_.has_last_weights ? 1 : 2;
    for (int i = 0; i < receipts; ++i) {
      note(port::Receipt{port::ReceiptKind::kWeights, version, port::Role::kEngine, 8, 4, digest});
    }
    note(port::VersionPublished{epoch, version, attempt, mode, reason, story_.bytes});
    if (mode == UpdateMode::kFull) note(port::AnchorSet{epoch, version, attempt, reason});
  }

  Story story_;
  SyntheticRun run_;
};

// Hears nothing more after event `end_after`, as a recorder whose process was killed.
class Cut : public port::TraceSink {
 public:
  Cut(port::TraceSink& to, std::uint64_t end_after) : to_(to), end_after_(end_after) {}
  void on_event(const port::TraceEvent& event) override {
    if (event.seq <= end_after_) to_.on_event(event);
    has_ended_ = event.seq >= end_after_;
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    if (!has_ended_) to_.on_state(node, slot, digest);
  }
  void on_stream(std::uint32_t stream, std::string_view name) override { to_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override {
    if (!has_ended_) to_.on_decision(decision);
  }

 private:
  port::TraceSink& to_;
  std::uint64_t end_after_;
  bool has_ended_ = false;
};

History history_in(const std::string& path) {
  const auto reader = record::RunReader::open(path);
  EXPECT_TRUE(reader);
  auto history = analyse::read_history(**reader);
  EXPECT_TRUE(history);
  return *history;
}

History history_of(const Story& story) {
  const ScratchFile file("history.db");
  const auto recorder = open_recorder(file.path(), {.block_events = 64});
  Teller(*recorder, story).tell();
  EXPECT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  return history_in(file.path());
}

History truncated_history_of(const Story& story, std::uint64_t end_after) {
  const ScratchFile file("truncated.db");
  {
    const auto recorder = open_recorder(file.path(), {.block_events = 1});
    Cut cut(*recorder, end_after);
    Teller(cut, story).tell();
  }
  EXPECT_EQ((*record::RunReader::open(file.path()))->state(), record::RecordingState::kTruncated);
  return history_in(file.path());
}

// The only section that differs.
const HistorySection& only_difference(const HistoryDiff& diff) {
  static const HistorySection none;
  const HistorySection* found = nullptr;
  for (const HistorySection& section : diff.sections) {
    if (section.differences.empty()) continue;
    EXPECT_EQ(found, nullptr) << analyse::to_text(diff);
    found = &section;
  }
  EXPECT_NE(found, nullptr);
  return found != nullptr ? *found : none;
}

bool contains(const HistoryDiff& diff, std::string_view line) {
  return analyse::to_text(diff).find(line) != std::string::npos;
}

TEST(HistoryDiff, RowsAreWhatWasSaid) {
  const ScratchFile file("rows.db");
  const auto recorder = open_recorder(file.path());
  SyntheticRun run(*recorder);
  run.update(2);
  run.update(1);
  ASSERT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  const History history = history_in(file.path());
  EXPECT_EQ(history.published,
            (std::vector<analyse::PublishedRow>{{1, 1, 2, "full", "retry"}, {1, 2, 2, "full", "retry"}}));
  EXPECT_EQ(history.anchors, (std::vector<analyse::AnchorRow>{{1, 1, 2, "retry"}, {1, 2, 2, "retry"}}));
  EXPECT_EQ(history.receipts,
            (std::vector<analyse::ReceiptRow>{{"weights", 1, "engine", 12, 1}, {"weights", 2, "engine", 12, 1}}));
  const std::vector<std::string> states{"leased", "bound", "released"};
  EXPECT_EQ(history.leases, (std::vector<analyse::LeaseRow>{{HostId{2}, "e0", 1, 1, states},
                                                            {HostId{2}, "e0", 2, 2, {"leased"}},
                                                            {HostId{2}, "e0", 1, 1, states},
                                                            {HostId{2}, "e0", 2, 3, {"leased"}}}));
  EXPECT_EQ(history.updates, (std::vector<analyse::UpdateRow>{{1, 1, 1, "full", "not_seeded", "peer_gone"},
                                                              {1, 1, 2, "full", "retry", "ok"},
                                                              {1, 2, 1, "full", "not_seeded", "peer_gone"},
                                                              {1, 2, 2, "full", "retry", "ok"}}));
}

// The same history at other times, in another interleaving, with other ports, digests, bytes and numbers of events.
TEST(HistoryDiff, TimingIsNoHistory) {
  const History history = history_of({});
  for (const Story& other : {Story{.seed = 2}, Story{.seed = 3, .steps = 5}, Story{.steps = 0}, Story{.bytes = 1},
                             Story{.ports = 31'000}, Story{.seed = 4, .second_first = true}}) {
    const History told = history_of(other);
    EXPECT_EQ(history, told);
    const HistoryDiff diff = analyse::diff_histories(history, told);
    EXPECT_TRUE(diff.is_equal()) << analyse::to_text(diff);
    EXPECT_TRUE(contains(diff, "equal up to time\n"));
  }
}

TEST(HistoryDiff, NamesAnotherMode) {
  const HistoryDiff diff = analyse::diff_histories(history_of({.last_mode = UpdateMode::kFull}), history_of({}));
  EXPECT_FALSE(diff.is_equal());
  EXPECT_TRUE(contains(diff, "  version 3: attempt 1 full (none) | attempt 1 delta (none)\n"))
      << analyse::to_text(diff);
  EXPECT_TRUE(contains(diff, "  anchor at version 3: attempt 1 (none) | -\n"));
  EXPECT_TRUE(contains(diff, "  version 3 attempt 1: full (none) ok | delta (none) ok\n"));
  EXPECT_TRUE(contains(diff, "published  3            1 differs\n"));
  EXPECT_TRUE(contains(diff, "anchors    2 | 1        1 differs\n"));
  EXPECT_TRUE(contains(diff, "receipts   6            equal\n"));
  EXPECT_TRUE(contains(diff, "the histories differ\n"));
}

TEST(HistoryDiff, NamesEpochsWhereTheyDiffer) {
  const HistoryDiff diff = analyse::diff_histories(history_of({.failover = true}), history_of({}));
  EXPECT_TRUE(contains(diff, "  version 2: epoch 2 attempt 2 full (peer_lost) | epoch 1 attempt 1 delta (none)\n"))
      << analyse::to_text(diff);
  EXPECT_TRUE(contains(diff, "  version 2 attempt 1: delta (none) peer_gone | delta (none) ok\n"));
  EXPECT_TRUE(contains(diff, "  version 2 attempt 2: full (peer_lost) ok | -\n"));
  EXPECT_TRUE(contains(diff, "  version 3: epoch 2 attempt 1 delta (none) | epoch 1 attempt 1 delta (none)\n"));
  EXPECT_FALSE(contains(diff, "  version 1"));
}

TEST(HistoryDiff, NamesAMissingReceipt) {
  const HistoryDiff diff = analyse::diff_histories(history_of({}), history_of({.has_last_weights = false}));
  const HistorySection& section = only_difference(diff);
  EXPECT_EQ(section.name, "receipts");
  ASSERT_EQ(section.differences.size(), 1U);
  EXPECT_EQ(section.differences[0].subject, "weights receipt of version 3, engine");
  EXPECT_EQ(section.differences[0].left, "count 8 holders 4 (2 times)");
  EXPECT_EQ(section.differences[0].right, "count 8 holders 4");
}

TEST(HistoryDiff, NamesAnotherNumberOfLeases) {
  const HistoryDiff diff = analyse::diff_histories(history_of({.second_leases = 3}), history_of({}));
  const HistorySection& section = only_difference(diff);
  EXPECT_EQ(section.name, "leases");
  EXPECT_EQ(section.left_rows, 4U);
  EXPECT_EQ(section.right_rows, 3U);
  ASSERT_EQ(section.differences.size(), 1U);
  EXPECT_EQ(section.differences[0].subject, "e1 on host 7");
  EXPECT_EQ(section.differences[0].left,
            "port 2: leased, bound, released (incarnation 1) (2 times); port 2: leased, bound (incarnation 1)");
  EXPECT_EQ(section.differences[0].right,
            "port 2: leased, bound, released (incarnation 1); port 2: leased, bound (incarnation 1)");
}

TEST(HistoryDiff, ThePatternOfPortsIsHistory) {
  const HistoryDiff diff = analyse::diff_histories(history_of({}), history_of({.port_returns = false}));
  const HistorySection& section = only_difference(diff);
  ASSERT_EQ(section.differences.size(), 1U);
  EXPECT_EQ(section.differences[0].left,
            "port 2: leased, bound, released (incarnation 1); port 2: leased, bound (incarnation 1)");
  EXPECT_EQ(section.differences[0].right,
            "port 2: leased, bound, released (incarnation 1); port 3: leased, bound (incarnation 1)");
}

// A port that is new on one side only must not make every port after it look different.
TEST(HistoryDiff, AnotherPortDoesNotShiftTheRest) {
  History left;
  for (std::uint64_t i = 0; i < 10; ++i) {
    left.leases.push_back({kHost, "a" + std::to_string(i), 1, i + 1, {"leased"}});
  }
  History right = left;
  for (std::uint64_t i = 5; i < 10; ++i) right.leases[i].port = i;
  const HistoryDiff diff = analyse::diff_histories(left, right);
  const HistorySection& section = only_difference(diff);
  ASSERT_EQ(section.differences.size(), 1U) << analyse::to_text(diff);
  EXPECT_EQ(section.differences[0].subject, "a5 on host 7");
  EXPECT_EQ(section.differences[0].left, "port 6: leased (incarnation 1)");
  EXPECT_EQ(section.differences[0].right, "port 5: leased (incarnation 1)");
}

TEST(HistoryDiff, TenOfEachSectionAreShown) {
  History left;
  for (Version version = 1; version <= 13; ++version) left.anchors.push_back({1, version, 1, "retry"});
  const HistoryDiff diff = analyse::diff_histories(left, {});
  EXPECT_EQ(only_difference(diff).differences.size(), 13U);
  EXPECT_TRUE(contains(diff, "anchor at version 10: "));
  EXPECT_FALSE(contains(diff, "anchor at version 11: "));
  EXPECT_TRUE(contains(diff, "  and 3 more\n"));
}

// Of many values of one subject those are shown that begin to differ.
TEST(HistoryDiff, LongListsBeginWhereTheyDiffer) {
  History left;
  for (std::uint64_t i = 0; i < 30; ++i) left.leases.push_back({kHost, "a", 1, i + 1, {"leased"}});
  History right = left;
  right.leases[20].states = {"leased", "bound"};
  const HistoryDiff diff = analyse::diff_histories(left, right);
  const HistorySection& section = only_difference(diff);
  ASSERT_EQ(section.differences.size(), 1U);
  EXPECT_EQ(section.differences[0].left,
            "(20 alike); port 21: leased (incarnation 1); port 22: leased (incarnation 1); "
            "port 23: leased (incarnation 1); port 24: leased (incarnation 1); (6 more)");
  EXPECT_TRUE(section.differences[0].right.starts_with("(20 alike); port 21: leased, bound (incarnation 1); port 22"));
}

// Wherever a recording is cut, what it lacks is no difference; what it says otherwise is one.
TEST(HistoryDiff, TruncationExplainsOnlyWhatIsMissing) {
  const Story story{.failover = true};
  const History whole = history_of({.seed = 2, .failover = true});
  const History other = history_of({.seed = 2, .last_mode = UpdateMode::kFull, .failover = true});
  std::size_t parted = 0;
  std::size_t equal = 0;
  for (std::uint64_t end_after = 1; end_after < 320; end_after += 7) {
    const History cut = truncated_history_of(story, end_after);
    const HistoryDiff diff = analyse::diff_histories(cut, whole);
    EXPECT_TRUE(analyse::may_be_truncation(diff, true, false)) << end_after << "\n" << analyse::to_text(diff);
    EXPECT_EQ(analyse::may_be_truncation(diff, false, true), diff.is_equal()) << end_after;
    EXPECT_EQ(analyse::may_be_truncation(diff, false, false), diff.is_equal()) << end_after;
    equal += diff.is_equal() ? 1U : 0U;
    parted += analyse::may_be_truncation(analyse::diff_histories(other, cut), false, true) ? 0U : 1U;
  }
  EXPECT_GT(equal, 0U);
  EXPECT_GT(parted, equal);
}

// A cut recording that has what the whole one never had has parted from it.
TEST(HistoryDiff, AdditionalRowsOfATruncatedRecordingAreADifference) {
  const HistoryDiff diff =
      analyse::diff_histories(truncated_history_of({}, 100'000), history_of({.last_version = false}));
  EXPECT_FALSE(diff.is_equal());
  EXPECT_FALSE(analyse::may_be_truncation(diff, true, false)) << analyse::to_text(diff);
}

}  // namespace
}  // namespace areal::testing
