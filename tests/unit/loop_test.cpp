// The loop's timers and posts.
#include "engine/real/host/loop.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace areal::host {
namespace {

TEST(Loop, TimersFireInOrderAndCancelledOnesNever) {
  const auto loop = Loop::create().value();
  std::vector<int> fired;
  loop->arm(20_ms, [&] { fired.push_back(3); });
  loop->arm(1_ms, [&] { fired.push_back(1); });
  const LoopTimer never = loop->arm(2_ms, [&] { fired.push_back(0); });
  loop->arm(2_ms, [&] { fired.push_back(2); });
  loop->arm(30_ms, [&] { loop->stop(); });
  EXPECT_TRUE(loop->cancel(never));
  EXPECT_FALSE(loop->cancel(never));
  const Instant before = loop->now();
  loop->run();
  EXPECT_EQ(fired, (std::vector<int>{1, 2, 3}));
  EXPECT_GE((loop->now() - before).ns, Duration{29_ms}.ns);
}

// A timer due at once that arms itself again must leave time for everything else.
TEST(Loop, SelfArmingTimerDoesNotKeepTheLoop) {
  const auto loop = Loop::create().value();
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    loop->arm(0_ns, again);
  };
  loop->arm(0_ns, again);
  loop->arm(5_ms, [&] { loop->stop(); });
  loop->run();
  EXPECT_GT(rounds, 1);
}

TEST(Loop, HandlerMayCancelATimerThatIsDueAsWell) {
  const auto loop = Loop::create().value();
  bool fired = false;
  LoopTimer second;
  loop->arm(1_ms, [&] { loop->cancel(second); });
  second = loop->arm(1_ms, [&] { fired = true; });
  loop->arm(5_ms, [&] { loop->stop(); });
  loop->run();
  EXPECT_FALSE(fired);
}

TEST(Loop, StopBeforeRunIsKept) {
  const auto loop = Loop::create().value();
  loop->stop();
  loop->run();
  int ran = 0;
  loop->post([&] { ++ran; });
  loop->stop();
  loop->run();
  EXPECT_EQ(ran, 1);
}

TEST(Loop, OtherThreadsPostInOrder) {
  const auto loop = Loop::create().value();
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop->post([&seen, i] { seen.push_back(i); });
    loop->stop();
  });
  loop->run();
  other.join();
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Loop, ProcessesWithOneEpochHaveOneTime) {
  const Instant epoch = Loop::machine_now();
  const auto a = Loop::create(epoch).value();
  const auto b = Loop::create(epoch).value();
  const Instant first = a->now();
  const Instant second = b->now();
  const Instant third = a->now();
  EXPECT_LE(first, second);
  EXPECT_LE(second, third);
  EXPECT_LT(third, Instant{Duration{60_s}.ns});
}

}  // namespace
}  // namespace areal::host
