// Recordings of single processes merge into one causal order, whatever their clocks show and whoever died.
#include "replay/analyse/merge.h"

#include <gtest/gtest.h>

#include "sim/check/judge.h"
#include "sim/explore/listeners.h"
#include "tests/replay/process_parts.h"
#include "tests/replay/simulated_run.h"

namespace areal::testing {
namespace {

using analyse::ProcessId;

struct Merged {
  analyse::MergeResult result;
  OwnLines lines;
  std::vector<port::TraceEvent> events;
};

Merged merge_parts(std::span<const analyse::NamedReader> parts) {
  Merged merged;
  LineCollector all;
  sim::Listeners tee({&merged.lines, &all});
  const auto head = analyse::read_merge_head(parts);
  EXPECT_TRUE(head) << (head ? "" : head.error().detail);
  auto result = analyse::merge(*head, parts, tee);
  EXPECT_TRUE(result) << (result ? "" : result.error().detail);
  if (result) merged.result = std::move(*result);
  merged.events = std::move(all.events);
  return merged;
}

// In words, so that a difference can be read.
std::vector<std::string> verdicts_of(const std::vector<port::TraceEvent>& events, const sim::SetupPtr& setup,
                                     bool ended) {
  sim::Judges judges = sim::make_judges(setup);
  sim::Violations violations;
  for (const port::TraceEvent& event : events) judges.on_event(event, violations);
  judges.at_end(ended, violations);
  std::vector<std::string> words;
  for (const sim::Violation& one : violations.all()) {
    words.push_back(std::string(sim::info_of(one.invariant).name) + " at " + setup->name_of(one.node));
  }
  for (const sim::Measure& measure : judges.measures()) {
    words.push_back(std::string(measure.name) + " " + std::to_string(measure.value));
  }
  std::ranges::stable_sort(words);
  return words;
}

class Merge : public ::testing::Test {
 protected:
  void simulate(const std::string& file) {
    run_ = std::make_unique<SimulatedRun>(file);
    sim::Listeners tee({&lines_, &all_});
    run_->run(tee);
  }
  [[nodiscard]] ProcessParts split(const std::vector<PartChange>& changes = {}) const {
    return {lines_, run_->info(), run_->nodes(), run_->room().kinds, changes};
  }
  [[nodiscard]] NodeId node(const std::string& name) const {
    return std::ranges::find(run_->room().nodes, name, &sim::RoomNode::name)->id;
  }
  // What every process did, with its causes, is what it did in the simulation.
  void expect_own_lines_kept(const OwnLines& merged) const {
    ASSERT_EQ(merged.processes.size(), lines_.processes.size());
    for (const OwnLines::Process& process : lines_.processes) {
      const auto other = std::ranges::find(merged.processes, process.id, &OwnLines::Process::id);
      ASSERT_NE(other, merged.processes.end());
      EXPECT_TRUE(other->lines == process.lines) << process.id.node.value << " #" << process.id.incarnation;
    }
  }

  std::unique_ptr<SimulatedRun> run_;
  OwnLines lines_;
  LineCollector all_;
};

TEST_F(Merge, SplitAndMergedRunIsTheSameUpToInterleaving) {
  simulate("smoke.yaml");
  const ProcessParts parts = split();
  EXPECT_GT(parts.parts.size(), run_->room().nodes.size());  // One died and came back.
  const Merged merged = merge_parts(parts.parts);
  EXPECT_EQ(merged.result.events, all_.events.size());
  EXPECT_EQ(merged.result.lost_causes, 0U);
  EXPECT_TRUE(merged.result.is_whole());
  EXPECT_TRUE(merged.lines.causes_come_first);
  expect_own_lines_kept(merged.lines);
  EXPECT_EQ(verdicts_of(merged.events, run_->room().setup, true), verdicts_of(all_.events, run_->room().setup, true));
}

TEST_F(Merge, JudgesFindTheSameViolations) {
  simulate("canary.yaml");
  const ProcessParts parts = split();
  const Merged merged = merge_parts(parts.parts);
  const auto expected = verdicts_of(all_.events, run_->room().setup, false);
  EXPECT_TRUE(std::ranges::any_of(expected, [](const std::string& words) { return words.starts_with("INV-1 "); }));
  EXPECT_EQ(verdicts_of(merged.events, run_->room().setup, false), expected);
}

// Times and Lamport numbers that begin again contradict causes and the order of incarnations; both hold all the same.
TEST_F(Merge, CausesAndIncarnationsHoldWhereTimesAndLamportNumbersFail) {
  simulate("smoke.yaml");
  std::vector<PartChange> changes;
  for (const OwnLines::Process& process : lines_.processes) {
    if (process.id.node.value % 2 == 1 || process.id.incarnation > 1)
      changes.push_back({.process = process.id, .clock = {-process.lines.front().at.ns}, .lamport_from_0 = true});
  }
  const ProcessParts parts = split(changes);
  const Merged merged = merge_parts(parts.parts);
  EXPECT_TRUE(merged.lines.causes_come_first);
  EXPECT_EQ(merged.result.events, all_.events.size());
  std::vector<ProcessId> seen;
  for (const OwnLines::Place& place : merged.lines.order) {
    if (seen.empty() || seen.back() != place.process) std::erase(seen, place.process), seen.push_back(place.process);
    const bool later_ran = std::ranges::any_of(seen, [&](const ProcessId& other) {
      return other.node == place.process.node && other.incarnation > place.process.incarnation;
    });
    ASSERT_FALSE(later_ran) << place.process.node.value;
  }
  for (const OwnLines::Process& process : merged.lines.processes) {
    std::uint64_t number = 0;
    for (const OwnLine& line : process.lines) {
      if (line.number == 0) continue;
      ASSERT_EQ(line.number, ++number);
    }
  }
}

TEST_F(Merge, KilledProcessMayLoseItsEnd) {
  simulate("smoke.yaml");
  const ProcessId killed{node("engine.1.rank.0"), 1};
  const auto& lines = std::ranges::find(lines_.processes, killed, &OwnLines::Process::id)->lines;
  // Cut before the last effect that led to something elsewhere.
  std::uint64_t last = 0;
  for (const OwnLines::Process& process : lines_.processes) {
    for (const OwnLine& line : process.lines) {
      if (line.cause_process == killed && process.id != killed) last = std::max(last, line.cause_number);
    }
  }
  ASSERT_GT(last, 1U);
  ASSERT_LT(last, lines.size());
  const ProcessParts parts = split({{.process = killed, .keep = last - 1}});
  const Merged merged = merge_parts(parts.parts);
  EXPECT_GE(merged.result.lost_causes, 1U);
  EXPECT_TRUE(merged.result.is_whole()) << to_text(merged.result);
  EXPECT_TRUE(merged.lines.causes_come_first);
  EXPECT_NE(to_text(merged.result).find("engine.1.rank.0 #1 after"), std::string::npos) << to_text(merged.result);
}

TEST_F(Merge, TruncatedPartOfAProcessThatLivedIsNotWhole) {
  simulate("smoke.yaml");
  const ProcessParts parts = split({{.process = {node("router"), 1}, .keep = 20}});
  const Merged merged = merge_parts(parts.parts);
  EXPECT_FALSE(merged.result.is_whole());
  EXPECT_GE(merged.result.lost_causes, 1U);
  EXPECT_NE(to_text(merged.result).find("nothing shows why"), std::string::npos);
}

// Nothing was committed before it was killed: the file's name is all there is.
TEST_F(Merge, EmptyPartIsKnownByItsName) {
  simulate("smoke.yaml");
  const ProcessId killed{node("engine.1.rank.0"), 1};
  ProcessParts parts = split({{.process = killed, .keep = 0}});
  for (analyse::NamedReader& part : parts.parts) {
    if (part.name.ends_with("engine.1.rank.0.1.db")) part.name = "run/engine.1.rank.0.1.db";
  }
  const Merged merged = merge_parts(parts.parts);
  EXPECT_TRUE(merged.result.is_whole()) << to_text(merged.result);
  EXPECT_EQ(merged.result.processes.size(), lines_.processes.size());
}

TEST_F(Merge, AbsentPartIsNamed) {
  simulate("smoke.yaml");
  ProcessParts parts = split();
  std::erase_if(parts.parts, [](const analyse::NamedReader& part) { return part.name.ends_with("router.1.db"); });
  const Merged merged = merge_parts(parts.parts);
  ASSERT_EQ(merged.result.absent.size(), 1U);
  EXPECT_EQ(merged.result.absent[0], "node" + std::to_string(node("router").value) + " #1");
  EXPECT_FALSE(merged.result.is_whole());
}

// Steps that nothing links change places when a clock is wrong; causes and every process's own order do not.
TEST_F(Merge, ClockThatIsAheadIsNoticedAndKeepsCauses) {
  simulate("smoke.yaml");
  const ProcessId ahead{node("engine.0.rank.0"), 1};
  const ProcessParts plain = split();
  const Merged before = merge_parts(plain.parts);
  EXPECT_TRUE(std::ranges::none_of(before.result.offsets, &analyse::ClockOffset::is_certain)) << to_text(before.result);
  const ProcessParts shifted = split({{.process = ahead, .clock = 5_s}});
  const Merged after = merge_parts(shifted.parts);
  EXPECT_TRUE(after.lines.causes_come_first);
  EXPECT_TRUE(after.result.is_whole());
  EXPECT_EQ(after.result.open_meetings, 0U);
  // Nobody is seen to end a barrier before the others came to it.
  EXPECT_EQ(verdicts_of(after.events, run_->room().setup, true), verdicts_of(all_.events, run_->room().setup, true));
  ASSERT_EQ(after.lines.processes.size(), lines_.processes.size());
  for (const OwnLines::Process& process : after.lines.processes) {
    EXPECT_EQ(process.events, std::ranges::find(lines_.processes, process.id, &OwnLines::Process::id)->events);
  }
  std::size_t found = 0;
  for (const analyse::ClockOffset& offset : after.result.offsets) {
    const bool is_left = after.result.processes[offset.left].id == ahead;
    const bool is_right = after.result.processes[offset.right].id == ahead;
    const std::int64_t expected = is_left ? -5'000'000'000 : is_right ? 5'000'000'000 : 0;
    EXPECT_LE(std::abs(offset.offset.ns - expected), offset.error.ns);
    found += (is_left || is_right) && offset.is_certain() ? 1 : 0;
  }
  EXPECT_GE(found, 1U);
  EXPECT_NE(to_text(after.result).find("engine.0.rank.0 #1"), std::string::npos) << to_text(after.result);
}

TEST_F(Merge, PartsOfOtherRunsAreRefused) {
  simulate("smoke.yaml");
  const ProcessParts parts = split();
  record::RunInfo info = run_->info();
  info.seed += 1;
  const ProcessParts other(lines_, info, run_->nodes(), run_->room().kinds);
  std::vector<analyse::NamedReader> mixed{parts.parts[0], other.parts[1]};
  const auto head = analyse::read_merge_head(mixed);
  ASSERT_FALSE(head);
  EXPECT_NE(head.error().detail.find("another seed"), std::string::npos) << head.error().detail;

  std::vector<analyse::NamedReader> twice{parts.parts[0], parts.parts[1], parts.parts[0]};
  LineCollector out;
  const auto merged = analyse::merge(*analyse::read_merge_head(twice), twice, out);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, Errc::kInvalid);
}

// Two processes that each wait for the other could not have happened.
TEST(MergeOrder, CausesInACircleAreRefused) {
  const ScratchFile left("gateway.1.db");
  const ScratchFile right("e0.1.db");
  const auto write = [](const std::string& path, NodeId own, NodeId other) {
    const auto recorder = open_recorder(path);
    port::TraceEvent event;
    event.seq = 1;
    event.cause = node::remote_cause({other, 1, 1});
    event.node = own;
    event.incarnation = 1;
    event.record = to_record(port::TimerFired{TimerId{1}});
    recorder->on_event(event);
    ASSERT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  };
  write(left.path(), {1}, {2});
  write(right.path(), {2}, {1});
  const auto a = record::RunReader::open(left.path());
  const auto b = record::RunReader::open(right.path());
  const std::vector<analyse::NamedReader> parts{{a->get(), left.path()}, {b->get(), right.path()}};
  LineCollector out;
  const auto merged = analyse::merge(*analyse::read_merge_head(parts), parts, out);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, Errc::kCorrupt);
}

TEST(ClockOffsets, AreHalfTheDifferenceOfTheLeastWays) {
  analyse::ClockOffsets clocks;
  clocks.add(0, {1'000}, 1, {9'000});  // 8,000 there.
  clocks.add(0, {2'000}, 1, {9'000});  // 7,000, the least.
  clocks.add(1, {20'000}, 0, {17'000});
  clocks.add(1, {30'000}, 2, {31'000});  // Never answered: nothing can be said.
  const auto offsets = clocks.estimates();
  ASSERT_EQ(offsets.size(), 1U);
  EXPECT_EQ(offsets[0].offset, Duration{5'000});
  EXPECT_EQ(offsets[0].error, Duration{2'000});
  EXPECT_EQ(offsets[0].there, 2U);
  EXPECT_EQ(offsets[0].back, 1U);
  EXPECT_TRUE(offsets[0].is_certain());
}

}  // namespace
}  // namespace areal::testing
