// The fault plan: what sets faults off, the budget, healing, and what is counted.
#include "sim/fault/fault_plan.h"

#include <gtest/gtest.h>

namespace areal::sim {
namespace {

using config::FaultKind;
using config::FaultSpec;

class Ignore : public port::EventSink {
 public:
  void on_event(const port::TraceEvent& /*event*/) override {}
  void on_stream(std::uint32_t /*stream*/, std::string_view name) override { streams.emplace_back(name); }
  std::vector<std::string> streams;
};

class FaultPlanTest : public testing::Test {
 protected:
  FaultPlanTest() {
    port::add_kinds(kinds);
    add_fault_kinds(kinds);
    directory = {{},
                 {"trainer.0", {}, port::Role::kTrainer},
                 {"engine.0", {}, port::Role::kEngine},
                 {"engine.1", {}, port::Role::kEngine},
                 {"engine.2", {}, port::Role::kEngine}};
  }

  FaultPlan plan_of(const std::vector<FaultSpec>& specs, Profile profile = Profile::kCalm) {
    auto plan = FaultPlan::make(specs, budget, profile, kinds, directory);
    EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().detail);
    if (!plan) return {};
    plan->start(at({0}));
    return *plan;
  }
  std::string error_of(const FaultSpec& spec) {
    const auto plan = FaultPlan::make(std::vector{spec}, budget, Profile::kCalm, kinds, directory);
    EXPECT_FALSE(plan.has_value());
    return plan ? "" : plan.error().detail;
  }
  FaultContext at(Instant now) { return {now, decisions, sink}; }
  std::vector<FaultAction> fire(FaultPlan& plan, Instant now) {
    std::vector<FaultAction> actions;
    plan.fire_timed(at(now), actions);
    return actions;
  }
  template <class T>
  std::vector<FaultAction> see(FaultPlan& plan, Instant now, NodeId node, port::TraceWhat what, const T& record) {
    port::TraceEvent event;
    event.node = node;
    event.what = what;
    event.record = to_record(record);
    std::vector<FaultAction> actions;
    plan.on_event(event, at(now), actions);
    return actions;
  }
  MessageFate send(FaultPlan& plan, Instant now, port::MessageKind kind = port::MessageKind::kRequest) {
    return plan.message_fate({{1}, {2}, kind, 0}, at(now));
  }

  KindTable kinds;
  NodeDirectory directory;
  config::BudgetSettings budget;
  Decisions decisions{1};
  Ignore sink;
};

FaultSpec fault(FaultKind kind, std::string node = "") {
  FaultSpec spec;
  spec.kind = kind;
  spec.node = std::move(node);
  spec.line = 5;
  return spec;
}
FaultSpec timed(FaultKind kind, std::string node, Duration when, Duration lasts = {}) {
  FaultSpec spec = fault(kind, std::move(node));
  spec.at = when;
  spec.lasts = lasts;
  return spec;
}

constexpr Instant second(std::int64_t seconds) { return {seconds * 1'000'000'000}; }

TEST_F(FaultPlanTest, TimedFaultsComeInOrderOfTime) {
  FaultSpec later = timed(FaultKind::kHang, "trainer.0", 2_s, 5_s);
  later.after = 1_s;
  FaultPlan plan = plan_of({later, timed(FaultKind::kKill, "engine.1", 1_s)});
  EXPECT_EQ(plan.next_timed(), second(1));
  EXPECT_TRUE(fire(plan, {999'999'999}).empty());
  const std::vector<FaultAction> kill = fire(plan, second(1));
  ASSERT_EQ(kill.size(), 1U);
  EXPECT_EQ(kill[0].act, FaultAct::kKill);
  EXPECT_EQ(kill[0].node, NodeId{3});
  EXPECT_EQ(kill[0].fault, 2U);
  EXPECT_EQ(plan.next_timed(), second(3));
  const std::vector<FaultAction> hang = fire(plan, second(3));
  ASSERT_EQ(hang.size(), 1U);
  EXPECT_EQ(hang[0].act, FaultAct::kHang);
  EXPECT_EQ(hang[0].until, second(8));

  const std::vector<FaultNotice> notices = plan.take_notices();
  ASSERT_EQ(notices.size(), 2U);
  const auto applied = from_record<FaultApplied>(notices[0].record);
  EXPECT_EQ(applied.fault, 2U);
  EXPECT_EQ(applied.node, NodeId{3});
  EXPECT_EQ(to_text(kinds, notices[1].record), "fault_applied{fault=1 kind=hang node=1 other=0 lasts=5 s detail=0}");
  EXPECT_EQ(fault_event(notices[0], 7, 6, second(1)).what, port::TraceWhat::kFault);
  EXPECT_FALSE(plan.has_notices());
}

TEST_F(FaultPlanTest, ATriggerFiresAtItsEventAndLaterIfAsked) {
  FaultSpec spec = fault(FaultKind::kKill);  // No pattern: whoever set it off.
  spec.when = config::EventMatch{.node = "engine.*", .kind = "join_group", .fields = {}, .occurrence = 2};
  FaultSpec later = spec;
  later.node = "trainer.0";
  later.after = 3_s;
  FaultPlan plan = plan_of({spec, later});
  EXPECT_TRUE(see(plan, second(1), {3}, port::TraceWhat::kEffect, port::JoinGroup{}).empty());
  EXPECT_TRUE(see(plan, second(1), {3}, port::TraceWhat::kDropped, port::JoinGroup{}).empty());  // It never happened.
  const std::vector<FaultAction> now = see(plan, second(2), {4}, port::TraceWhat::kEffect, port::JoinGroup{});
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].node, NodeId{4});
  EXPECT_EQ(plan.next_timed(), second(5));
  const std::vector<FaultAction> then = fire(plan, second(5));
  ASSERT_EQ(then.size(), 1U);
  EXPECT_EQ(then[0].node, NodeId{1});
}

TEST_F(FaultPlanTest, KillsBeyondTheBudgetAreSkippedUntilARankIsBack) {
  FaultPlan plan = plan_of({timed(FaultKind::kKill, "engine.*", 1_s), timed(FaultKind::kKill, "engine.2", 2_s)});
  EXPECT_EQ(fire(plan, second(1)).size(), 1U);  // Three fit, one may die.
  EXPECT_EQ(plan.counts()[0].applied, 1U);
  EXPECT_EQ(plan.counts()[0].skipped, 2U);
  see(plan, second(1), {2}, port::TraceWhat::kInput, port::Started{.incarnation = 2});
  const std::vector<FaultAction> second_kill = fire(plan, second(2));
  ASSERT_EQ(second_kill.size(), 1U);
  EXPECT_EQ(second_kill[0].node, NodeId{4});
  EXPECT_EQ(plan.counts()[1].skipped, 0U);
}

TEST_F(FaultPlanTest, ProcessesThatDiedByThemselvesCountToo) {
  FaultPlan plan = plan_of({timed(FaultKind::kKill, "engine.0", 1_s)});
  plan.node_down({4});
  EXPECT_TRUE(fire(plan, second(1)).empty());
  EXPECT_EQ(plan.counts()[0].skipped, 1U);
  ASSERT_EQ(plan.take_notices().size(), 1U);
}

TEST_F(FaultPlanTest, NothingNewHappensAfterHealing) {
  budget.heal_at = 10_s;
  FaultSpec loss = fault(FaultKind::kLoseMessage);
  loss.chance = config::Ratio{1, 1};
  FaultPlan plan =
      plan_of({loss, timed(FaultKind::kPartition, "engine.0", 5_s), timed(FaultKind::kKill, "engine.1", 20_s)});
  EXPECT_TRUE(send(plan, second(1)).lost);
  fire(plan, second(5));
  EXPECT_TRUE(plan.partitioned({1}, {2}, second(9)));
  EXPECT_EQ(plan.next_timed(), second(10));
  fire(plan, second(10));
  EXPECT_TRUE(plan.healed());
  EXPECT_FALSE(plan.partitioned({1}, {2}, second(10)));
  EXPECT_FALSE(send(plan, second(11)).lost);
  EXPECT_EQ(plan.next_timed(), std::nullopt);
  EXPECT_TRUE(fire(plan, second(20)).empty());
  EXPECT_EQ(plan.counts()[2].skipped, 1U);
  EXPECT_EQ(from_record<Healed>(plan.take_notices().back().record).cut, 1U);
}

// Only what is asked again may be lost: a lost one-way message would be our own bug, not a fault.
TEST_F(FaultPlanTest, LossAndDoublingLeaveOneWayMessagesAlone) {
  FaultSpec loss = fault(FaultKind::kLoseMessage);
  loss.chance = config::Ratio{1, 1};
  FaultSpec twice = loss;
  twice.kind = FaultKind::kDuplicateMessage;
  FaultPlan plan = plan_of({loss, twice});
  const MessageFate one_way = send(plan, second(1), port::MessageKind::kOneWay);
  EXPECT_FALSE(one_way.lost);
  EXPECT_EQ(one_way.copies, 1U);
  const MessageFate reply = send(plan, second(1), port::MessageKind::kReply);
  EXPECT_TRUE(reply.lost);
  EXPECT_EQ(reply.copies, 2U);
}

TEST_F(FaultPlanTest, AMessageFaultTakesTheNextOneOrAllWhileItLasts) {
  FaultSpec late = timed(FaultKind::kDelayMessage, "trainer.0", 1_s, 700_ms);
  FaultSpec lost = timed(FaultKind::kLoseMessage, "trainer.0", 10_s, 2_s);
  FaultPlan plan = plan_of({late, lost});
  EXPECT_EQ(send(plan, second(0)).late, 0_s);
  fire(plan, second(1));
  EXPECT_EQ(send(plan, second(2)).late, 700_ms);
  EXPECT_EQ(send(plan, second(2)).late, 0_s);
  fire(plan, second(10));
  EXPECT_TRUE(send(plan, second(11)).lost);
  EXPECT_TRUE(send(plan, second(11)).lost);
  EXPECT_FALSE(send(plan, second(12)).lost);
  EXPECT_EQ(plan.counts()[1].applied, 2U);
}

TEST_F(FaultPlanTest, PatternsSayWhoseMessages) {
  FaultSpec from_to = fault(FaultKind::kLoseMessage, "engine.*");
  from_to.other = "trainer.0";
  from_to.chance = config::Ratio{1, 1};
  FaultPlan plan = plan_of({from_to});
  const auto lost = [&](NodeId from, NodeId to) {
    return plan.message_fate({from, to, port::MessageKind::kRequest, 0}, at(second(1))).lost;
  };
  EXPECT_TRUE(lost({2}, {1}));
  EXPECT_FALSE(lost({1}, {2}));
  EXPECT_FALSE(lost({2}, {3}));
}

TEST_F(FaultPlanTest, APartitionPartsBothWaysAndEnds) {
  FaultSpec spec = timed(FaultKind::kPartition, "engine.0", 1_s, 4_s);
  FaultPlan plan = plan_of({spec});
  fire(plan, second(1));
  EXPECT_TRUE(plan.partitioned({1}, {2}, second(2)));
  EXPECT_TRUE(plan.partitioned({2}, {1}, second(2)));
  EXPECT_FALSE(plan.partitioned({1}, {3}, second(2)));
  EXPECT_TRUE(send(plan, second(4), port::MessageKind::kOneWay).lost);
  EXPECT_FALSE(send(plan, second(5), port::MessageKind::kOneWay).lost);
}

TEST_F(FaultPlanTest, OccasionsAreTakenOnceAtTheRightNode) {
  FaultSpec apply = timed(FaultKind::kFailCompute, "engine.0", 1_s);
  apply.what = "apply";
  FaultSpec flip = timed(FaultKind::kFlipByte, "engine.1", 1_s);
  flip.limit = 2;
  FaultPlan plan = plan_of({apply, flip, timed(FaultKind::kNoMemory, "engine.2", 1_s)});
  EXPECT_FALSE(plan.take_compute_failure({2}, port::ComputeKind::kApply, at(second(0))));
  fire(plan, second(1));
  EXPECT_FALSE(plan.take_compute_failure({2}, port::ComputeKind::kFence, at(second(1))));
  EXPECT_FALSE(plan.take_compute_failure({3}, port::ComputeKind::kApply, at(second(1))));
  EXPECT_TRUE(plan.take_compute_failure({2}, port::ComputeKind::kApply, at(second(1))));
  EXPECT_FALSE(plan.take_compute_failure({2}, port::ComputeKind::kApply, at(second(1))));
  EXPECT_TRUE(plan.take_flip({3}, at(second(1))));
  EXPECT_TRUE(plan.take_flip({3}, at(second(1))));
  EXPECT_FALSE(plan.take_flip({3}, at(second(1))));
  EXPECT_FALSE(plan.refuse_memory({3}, at(second(1))));
  EXPECT_TRUE(plan.refuse_memory({4}, at(second(1))));
}

TEST_F(FaultPlanTest, ASlowLinkIsSlowWhileItLasts) {
  FaultPlan plan = plan_of({timed(FaultKind::kSlowLink, "engine.0", 1_s, 2_s)});
  EXPECT_EQ(plan.payload_factor({2}, at(second(0))), 1U);
  fire(plan, second(1));
  EXPECT_EQ(plan.payload_factor({2}, at(second(2))), 10U);
  EXPECT_EQ(plan.payload_factor({3}, at(second(2))), 1U);
  EXPECT_EQ(plan.payload_factor({2}, at(second(3))), 1U);
}

TEST_F(FaultPlanTest, TheFirstCoinSwitchesAFaultOffForTheWholeRun) {
  FaultSpec spec = fault(FaultKind::kLoseMessage);
  spec.chance = config::Ratio{1, 1};
  spec.active = config::Ratio{1, 2};
  int active = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    decisions = Decisions(seed);
    FaultPlan plan = plan_of({spec});
    EXPECT_EQ(send(plan, second(1)).lost, plan.counts()[0].active);
    active += plan.counts()[0].active ? 1 : 0;
  }
  EXPECT_NEAR(active, 100, 30);
  EXPECT_EQ(sink.streams.front(), "fault.active.1");
}

TEST_F(FaultPlanTest, AHostileRunLosesDelaysAndKillsWithinTheBudget) {
  std::uint64_t lost = 0;
  std::uint64_t late = 0;
  std::uint64_t kills = 0;
  std::uint64_t calm_runs = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    decisions = Decisions(seed);
    FaultPlan plan = plan_of({}, Profile::kHostile);
    std::uint64_t seen = 0;
    std::uint64_t down = 0;
    for (std::int64_t i = 0; i < 1'000; ++i) {
      const MessageFate fate = send(plan, second(i));
      lost += fate.lost ? 1 : 0;
      late += fate.late.ns > 0 ? 1 : 0;
      EXPECT_LE(fate.late, 2_s);
      for (const std::uint64_t node : {1U, 2U, 3U, 4U}) {
        for (const FaultAction& action : see(plan, second(i), {node}, port::TraceWhat::kInput, port::TimerFired{})) {
          EXPECT_NE(action.node, NodeId{1});  // Only engine ranks.
          ++down;
        }
      }
      EXPECT_LE(down, 1U);
      seen += fate.lost || fate.late.ns > 0 || fate.copies > 1 ? 1 : 0;
    }
    kills += down;
    calm_runs += seen == 0 ? 1 : 0;
  }
  EXPECT_GT(lost, 100U);
  EXPECT_GT(late, 100U);
  EXPECT_GT(kills, 5U);
  EXPECT_GT(calm_runs, 0U);
}

TEST_F(FaultPlanTest, WordsAndBackGiveTheSameFuture) {
  FaultSpec when = fault(FaultKind::kKill);
  when.when = config::EventMatch{.node = "", .kind = "join_group", .fields = {}, .occurrence = 2};
  const std::vector<FaultSpec> specs{when, timed(FaultKind::kNoMemory, "engine.2", 1_s),
                                     timed(FaultKind::kPartition, "engine.0", 1_s, 9_s),
                                     timed(FaultKind::kKill, "trainer.0", 7_s)};
  FaultPlan plan = plan_of(specs);
  see(plan, second(1), {3}, port::TraceWhat::kEffect, port::JoinGroup{});
  fire(plan, second(1));
  plan.take_notices();
  StateWriter words;
  plan.save(words);
  auto back = FaultPlan::make(specs, budget, Profile::kCalm, kinds, directory);
  ASSERT_TRUE(back.has_value());
  StateReader reader(words.words());
  ASSERT_TRUE(back->load(reader));
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(back->next_timed(), second(7));
  EXPECT_TRUE(back->partitioned({1}, {2}, second(2)));
  EXPECT_TRUE(back->refuse_memory({4}, at(second(2))));
  EXPECT_EQ(see(*back, second(2), {3}, port::TraceWhat::kEffect, port::JoinGroup{}).size(), 1U);
  EXPECT_EQ(fire(*back, second(7)).size(), 1U);
}

TEST_F(FaultPlanTest, AWrongFaultIsToldWhatWouldBeRight) {
  EXPECT_EQ(error_of(fault(FaultKind::kKill)), "line 5: a fault needs `at`, `when` or `chance`");
  EXPECT_EQ(error_of(timed(FaultKind::kHang, "trainer.0", 1_s)),
            "line 5: this fault needs a time above 0 that it lasts");
  EXPECT_EQ(error_of(timed(FaultKind::kKill, "engin.0", 1_s)),
            "line 5: no node is called 'engin.0'; did you mean 'engine.0'?");
  FaultSpec compute = timed(FaultKind::kFailCompute, "engine.0", 1_s);
  compute.what = "aply";
  EXPECT_EQ(error_of(compute), "line 5: unknown operation 'aply'; did you mean 'apply'?");
  FaultSpec kill = timed(FaultKind::kKill, "engine.0", 1_s);
  kill.what = "apply";
  EXPECT_EQ(error_of(kill), "line 5: `what` means nothing for a kill");
}

}  // namespace
}  // namespace areal::sim
