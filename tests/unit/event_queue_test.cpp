// The event queue: exact order, cancelling, copies, words and back.
#include "sim/kernel/event_queue.h"

#include <gtest/gtest.h>

namespace areal::sim {
namespace {

using Queue = EventQueue<std::uint64_t>;

std::vector<std::uint64_t> drain(Queue queue) {
  std::vector<std::uint64_t> events;
  while (!queue.empty()) events.push_back(queue.pop().event);
  return events;
}

TEST(EventQueue, EqualTimesComeInTheOrderOfPosting) {
  Queue queue;
  for (std::uint64_t i = 0; i < 100; ++i) queue.post({i % 2 == 0 ? 7 : 3}, i);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 1; i < 100; i += 2) expected.push_back(i);
  for (std::uint64_t i = 0; i < 100; i += 2) expected.push_back(i);
  EXPECT_EQ(drain(queue), expected);
}

// A slot that was used before must not bring an old place in the order back.
TEST(EventQueue, ReusedSlotsKeepTheOrderOfPosting) {
  Queue queue;
  const std::uint64_t first = queue.post({1}, 1);
  queue.post({5}, 2);
  EXPECT_EQ(queue.pop().number, first);
  const std::uint64_t second = queue.post({5}, 3);
  EXPECT_GT(second, first);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{2, 3}));
}

TEST(EventQueue, CancelledEventsNeverComeAndOnlyOnceCanBeCancelled) {
  Queue queue;
  const std::uint64_t first = queue.post({1}, 1);
  const std::uint64_t second = queue.post({2}, 2);
  queue.post({3}, 3);
  EXPECT_TRUE(queue.cancel(first));
  EXPECT_FALSE(queue.cancel(first));
  EXPECT_EQ(queue.next_time(), Instant{2});
  const std::uint64_t reuser = queue.post({9}, 4);  // In the first one's slot.
  EXPECT_FALSE(queue.cancel(first));
  EXPECT_EQ(queue.pop().number, second);
  EXPECT_FALSE(queue.cancel(second));
  EXPECT_NE(queue.find(reuser), nullptr);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{3, 4}));
}

// A timer that is moved at every message leaves a key behind each time; they must not pile up.
TEST(EventQueue, MovingOneTimerManyTimesKeepsTheQueueSmall) {
  Queue queue;
  for (std::uint64_t i = 0; i < 10; ++i) queue.post({1'000'000}, i);
  std::uint64_t timer = queue.post({10}, 99);
  for (std::int64_t i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(queue.cancel(timer));
    timer = queue.post({10 + i}, 99);
  }
  EXPECT_EQ(queue.size(), 11U);
  StateWriter words;
  queue.save(words);
  EXPECT_LT(words.words().size(), 100U);
  EXPECT_EQ(queue.pop().event, 99U);
}

TEST(EventQueue, ACopyGoesItsOwnWay) {
  Queue queue;
  queue.post({1}, 1);
  Queue copy = queue;
  copy.post({0}, 2);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(drain(copy), (std::vector<std::uint64_t>{2, 1}));
}

TEST(EventQueue, WordsAndBackGiveTheSameFuture) {
  Queue queue;
  for (std::uint64_t i = 0; i < 50; ++i) queue.post({static_cast<std::int64_t>(i * 7 % 11)}, i);
  const std::uint64_t gone = queue.post({4}, 77);
  queue.cancel(gone);
  for (int i = 0; i < 9; ++i) queue.pop();
  StateWriter words;
  queue.save(words);
  Queue back;
  StateReader reader(words.words());
  ASSERT_TRUE(back.load(reader));
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(back.post({5}, 88), queue.post({5}, 88));
  EXPECT_EQ(drain(back), drain(queue));
}

TEST(EventQueue, DamagedWordsAreRefused) {
  Queue queue;
  for (std::uint64_t i = 0; i < 5; ++i) queue.post({1}, i);
  queue.pop();
  StateWriter writer;
  queue.save(writer);
  const std::vector<std::uint64_t> words(writer.words().begin(), writer.words().end());
  for (std::size_t cut = 0; cut < words.size(); ++cut) {
    Queue back;
    StateReader reader(std::span<const std::uint64_t>(words.data(), cut));
    EXPECT_FALSE(back.load(reader)) << cut;
    EXPECT_TRUE(back.empty());
  }
  for (const std::size_t place : {0U, 2U, 3U, 8U}) {  // Count of posts, two numbers, the free list.
    std::vector<std::uint64_t> damaged = words;
    damaged[place] ^= 7;
    Queue back;
    StateReader reader(damaged);
    EXPECT_FALSE(back.load(reader)) << place;
  }
}

}  // namespace
}  // namespace areal::sim
