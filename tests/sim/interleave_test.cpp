// Orders of named points: all are tried, those that cannot be are told apart, and a witness can be run again.
#include "sim/explore/interleave.h"

#include <gtest/gtest.h>

#include "tests/sim/scenario_runs.h"

namespace areal::sim {
namespace {

using test::read;
using test::settings_of;

config::Scenario label_race() { return read(test::scenario_folder() + "/reports/h08_reread_version_on_record.yaml"); }

// When each point of the scenario came, in the trace.
class PointTimes final : public RunObserver {
 public:
  PointTimes(const config::InterleaveSpec& spec, const Room& room) {
    for (config::EventMatch match : spec.points) {
      match.occurrence = 1;
      matchers_.push_back(*EventMatcher::compile(match, room.kinds, room.directory));
      seen_.push_back(0);
    }
  }
  void on_event(const port::TraceEvent& event) override {
    for (std::size_t i = 0; i < matchers_.size(); ++i) {
      const bool is_input = event.what == port::TraceWhat::kInput;
      if (matchers_[i].hit(event.node, is_input, event.record, event.body)) seen_[i] = event.seq;
    }
  }
  void on_state(NodeId /*node*/, SlotId /*slot*/, const Digest128& /*digest*/) override {}
  void on_stream(std::uint32_t /*stream*/, std::string_view /*name*/) override {}
  void on_decision(const port::Decision& /*decision*/) override {}

  [[nodiscard]] std::uint64_t seq(std::size_t point) const { return seen_[point]; }

 private:
  std::vector<EventMatcher> matchers_;
  std::vector<std::uint64_t> seen_;
};

TEST(Interleave, APossibleOrderIsTheOrderOfTheTrace) {
  const config::Scenario scenario = label_race();
  RunSettings settings = settings_of(scenario, "");
  for (const PointOrder& order : {PointOrder{0, 1, 2}, PointOrder{0, 2, 1}, PointOrder{1, 0, 2}}) {
    settings.order = order;
    PointTimes times(*scenario.interleave, *settings.room);
    const auto result = run_once(settings, &times);
    ASSERT_TRUE(result) << result.error().detail;
    EXPECT_TRUE(result->order_kept) << to_text(*scenario.interleave, order);
    EXPECT_LT(0U, times.seq(order[0]));
    EXPECT_LT(times.seq(order[0]), times.seq(order[1]));
    EXPECT_LT(times.seq(order[1]), times.seq(order[2]));
  }
}

// An answer cannot come before its request. The run ends well all the same.
TEST(Interleave, AnImpossibleOrderIsGivenUp) {
  RunSettings settings = settings_of(label_race(), "");
  settings.order = {2, 0, 1};
  const auto result = run_once(settings, nullptr);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->order_kept);
  EXPECT_EQ(result->verdict, config::Verdict::kHeld);
}

TEST(Interleave, AllOrdersAreTriedAndThePossibleOnesCounted) {
  std::uint64_t asked = 0;
  const auto all = try_orders(settings_of(label_race(), ""), [&](const RunResult&) { return ++asked, false; });
  ASSERT_TRUE(all);
  EXPECT_EQ(all->tried, 6U);
  EXPECT_EQ(all->kept, 3U);
  EXPECT_EQ(asked, 6U);
  EXPECT_TRUE(all->witness.empty());
}

TEST(Interleave, TheLimitEndsTheSearch) {
  config::Scenario scenario = label_race();
  scenario.interleave->limit = 2;
  const auto all = try_orders(settings_of(scenario, ""), [](const RunResult&) { return false; });
  ASSERT_TRUE(all);
  EXPECT_EQ(all->tried, 2U);
}

TEST(Interleave, AWitnessIsFoundAgainByItsOrder) {
  const config::Scenario scenario = label_race();
  RunSettings settings = settings_of(scenario, scenario.defect);
  const auto all = try_orders(settings, [](const RunResult& run) { return !run.violations.empty(); });
  ASSERT_TRUE(all);
  ASSERT_EQ(all->witnesses, 1U);
  EXPECT_EQ(to_text(*scenario.interleave, all->witness), "build_request, commit_update, record_output");
  settings.order = all->witness;
  const auto again = run_once(settings, nullptr);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->digest, all->witness_run.digest);
  EXPECT_FALSE(again->violations.empty());
}

TEST(Interleave, AnEffectIsNoPoint) {
  config::Scenario scenario = label_race();
  scenario.interleave->points[0].is_input = false;
  RunSettings settings = settings_of(scenario, "");
  settings.order = {0, 1, 2};
  EXPECT_FALSE(run_once(settings, nullptr));
}

}  // namespace
}  // namespace areal::sim
