// Contract of the clock and of the executor: time goes forward, timers fire once or never, tells come in order.
#include "tests/contract/port_contract.h"

namespace areal::test {

TEST_P(ClockContract, TimeGoesForwardByWhatPassed) {
  const Instant before = at(Seat::kEngine).clock().now();
  room().pass(250_ms);
  const Instant after = at(Seat::kEngine).clock().now();
  EXPECT_GE((after - before).ns, (250_ms).ns);
  EXPECT_GE(at(Seat::kEngine).clock().now().ns, after.ns);
}

TEST_P(ExecutorContract, ATimerFiresOnceAndNotEarly) {
  at(Seat::kEngine).executor().arm(kFirst, {TimerId{7}, 100_ms});
  room().pass(90_ms);
  EXPECT_TRUE(told<port::TimerFired>(Seat::kEngine).empty());
  room().settle();
  const auto fired = told<port::TimerFired>(Seat::kEngine);
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].timer.value, 7U);
  EXPECT_EQ(told_in_all(Seat::kEngine), 1U);
}

// A port that calls back from within a call would find a protocol half-way through its step.
TEST_P(ExecutorContract, NothingComesBackWithinACall) {
  at(Seat::kEngine).executor().arm(kFirst, {TimerId{1}, 0_ns});
  at(Seat::kEngine).executor().tell(kFirst, {kFirst, to_record(Word{1})});
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
  room().settle();
  EXPECT_EQ(told_in_all(Seat::kEngine), 2U);
}

TEST_P(ExecutorContract, ADisarmedTimerNeverFires) {
  port::Executor& executor = at(Seat::kEngine).executor();
  executor.arm(kFirst, {TimerId{1}, 50_ms});
  executor.arm(kFirst, {TimerId{2}, 50_ms});
  executor.disarm(kFirst, {TimerId{1}});
  executor.disarm(kFirst, {TimerId{3}});
  room().settle();
  const auto fired = told<port::TimerFired>(Seat::kEngine);
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].timer.value, 2U);
}

TEST_P(ExecutorContract, ArmingAnArmedTimerMovesIt) {
  port::Executor& executor = at(Seat::kEngine).executor();
  executor.arm(kFirst, {TimerId{1}, 100_ms});
  executor.arm(kFirst, {TimerId{1}, 400_ms});
  room().pass(300_ms);
  EXPECT_TRUE(told<port::TimerFired>(Seat::kEngine).empty());
  room().settle();
  EXPECT_EQ(told<port::TimerFired>(Seat::kEngine).size(), 1U);
}

TEST_P(ExecutorContract, ATimerThatFiredCanBeArmedAgain) {
  for (int i = 0; i < 2; ++i) {
    at(Seat::kEngine).executor().arm(kFirst, {TimerId{1}, 20_ms});
    room().settle();
  }
  EXPECT_EQ(told<port::TimerFired>(Seat::kEngine).size(), 2U);
}

TEST_P(ExecutorContract, TimersBelongToTheirSlot) {
  port::Executor& executor = at(Seat::kEngine).executor();
  executor.arm(kFirst, {TimerId{1}, 50_ms});
  executor.arm(kSecond, {TimerId{1}, 50_ms});
  executor.disarm(kFirst, {TimerId{1}});
  room().settle();
  EXPECT_TRUE(told<port::TimerFired>(Seat::kEngine, kFirst).empty());
  EXPECT_EQ(told<port::TimerFired>(Seat::kEngine, kSecond).size(), 1U);
}

TEST_P(ExecutorContract, TimersDieWithTheirProcess) {
  at(Seat::kTrainer).executor().arm(kFirst, {TimerId{1}, 60_s});
  room().kill(Seat::kTrainer);
  room().restart(Seat::kTrainer);
  room().settle();
  EXPECT_TRUE(told<port::TimerFired>(Seat::kTrainer).empty());
}

TEST_P(ExecutorContract, TellsArriveInOrderAsInputsOfTheirOwn) {
  for (std::uint64_t i = 0; i < 5; ++i) {
    at(Seat::kEngine).executor().tell(kFirst, {kSecond, to_record(Word{i})});
  }
  room().settle();
  const auto tells = told<port::TellIn>(Seat::kEngine, kSecond);
  ASSERT_EQ(tells.size(), 5U);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(tells[i].from_slot, kFirst);
    EXPECT_EQ(tells[i].body, to_record(Word{i}));
  }
  EXPECT_TRUE(room().seen(Seat::kEngine, kFirst).empty());
}

}  // namespace areal::test
