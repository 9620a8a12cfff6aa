// A queue whose digest is kept on mutation.
#include "engine/base/fifo.h"

#include <gtest/gtest.h>

#include <deque>

#include "engine/base/dense.h"
#include "engine/base/rng.h"

namespace areal {
namespace {

TEST(Fifo, GivesWhatADequeGives) {
  Fifo<std::uint32_t> fifo;
  std::deque<std::uint32_t> deque;
  Rng rng(3);
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    if (rng.draw_below(5) < 3) {
      fifo.push(i);
      deque.push_back(i);
    } else if (!deque.empty()) {
      EXPECT_EQ(fifo.pop(), deque.front());
      deque.pop_front();
    }
    ASSERT_EQ(fifo.size(), deque.size());
  }
}

Fifo<std::uint32_t> fifo_of(std::initializer_list<std::uint32_t> values) {
  Fifo<std::uint32_t> fifo;
  for (const std::uint32_t value : values) fifo.push(value);
  return fifo;
}

TEST(Fifo, TheDigestTellsOrderAndContent) {
  EXPECT_EQ(state_digest(fifo_of({1, 2, 3})), state_digest(fifo_of({1, 2, 3})));
  EXPECT_NE(state_digest(fifo_of({1, 2, 3})), state_digest(fifo_of({1, 3, 2})));
  EXPECT_NE(state_digest(fifo_of({1, 2, 3})), state_digest(fifo_of({1, 2})));
}

TEST(Fifo, IsReadBackAsItWasWritten) {
  Fifo<std::uint32_t> fifo = fifo_of({7, 8, 9});
  fifo.pop();
  StateWriter writer;
  writer.value(fifo);
  Fifo<std::uint32_t> copy;
  StateReader reader(writer.words());
  reader.value(copy);
  EXPECT_TRUE(reader.ok() && reader.at_end());
  fifo.push(10);
  copy.push(10);
  EXPECT_EQ(state_digest(copy), state_digest(fifo));
  EXPECT_EQ(copy.pop(), 8U);
}

TEST(Dense, GrowsWithoutForgettingItsDigest) {
  Dense<std::uint32_t> grown;
  for (std::uint32_t i = 0; i < 20; ++i) grown.push_back(i * 3);
  EXPECT_EQ(grown.sum(), grown.recomputed_sum());
  Dense<std::uint32_t> assigned(20);
  for (std::uint32_t i = 0; i < 20; ++i) assigned.set(i, i * 3);
  EXPECT_EQ(state_digest(grown), state_digest(assigned));
}

}  // namespace
}  // namespace areal
