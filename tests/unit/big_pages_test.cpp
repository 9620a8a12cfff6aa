#include "sim/kernel/big_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>

namespace areal::sim {
namespace {

// Around the size from which pages are big: 4 MiB are 2^19 words.
TEST(BigPages, KeepsItemsWhenItGrowsShrinksAndMoves) {
  BigVector<std::uint64_t> words;
  for (std::uint64_t i = 0; i < (1U << 20); ++i) words.push_back(i * i);
  BigVector<std::uint64_t> copy = words;
  words.resize(1000);
  words.shrink_to_fit();
  std::swap(words, copy);
  ASSERT_EQ(words.size(), 1U << 20);
  ASSERT_EQ(copy.size(), 1000U);
  for (std::uint64_t i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], i * i);
  for (std::uint64_t i = 0; i < copy.size(); ++i) ASSERT_EQ(copy[i], i * i);
}

TEST(BigPages, LargeMemoryBeginsAtAPageAndSmallDoesNotTakeOne) {
  const BigVector<std::uint32_t> large((std::size_t{4} << 20) / sizeof(std::uint32_t));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % (2U << 20), 0U);
  struct alignas(64) Wide {
    char bytes[64];
  };
  const BigVector<Wide> wide(3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 64, 0U);
}

TEST(BigPages, RefusesWhatNoMemoryHolds) {
  BigPages<std::uint64_t> pages;
  EXPECT_THROW(static_cast<void>(pages.allocate(~std::size_t{0} / 4)), std::bad_alloc);
}

}  // namespace
}  // namespace areal::sim
