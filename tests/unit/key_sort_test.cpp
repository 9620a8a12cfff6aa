// The sort of a few keys: any number of them, on narrow and wide extents, equal times in the order of their numbers.
#include "sim/kernel/key_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/base/rng.h"

namespace areal::sim {
namespace {

// REQUIRES: extent + 1 is a power of two, or 0.
void expect_sorted(std::size_t count, std::int64_t start, std::uint64_t extent, Rng& rng) {
  std::vector<QueueKey> keys(kFewKeys);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t offset = rng.draw_u64() & extent;
    keys[i] = {{static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + offset)}, i + 1};
  }
  std::vector<QueueKey> sorted(kFewKeys);
  sort_few(keys.data(), count, sorted.data(), start, extent);
  std::stable_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(sorted[i].at, keys[i].at) << count << " keys, extent " << extent;
    ASSERT_EQ(sorted[i].number, keys[i].number) << count << " keys, extent " << extent;
  }
}

TEST(KeySort, AnyCountAndExtent) {
  Rng rng(7);
  for (std::size_t count = 1; count <= kFewKeys; ++count) {
    for (int round = 0; round < 20; ++round) {
      for (unsigned bits = 0; bits < 63; bits += 3) expect_sorted(count, -5, (std::uint64_t{1} << bits) - 1, rng);
      expect_sorted(count, kLeastTime, ~std::uint64_t{0}, rng);
      expect_sorted(count, 1'000'000'000'000, 3, rng);  // Many equal times.
    }
  }
}

// Times whose upper bits are equal are put right by a second look.
TEST(KeySort, TimesThatDifferInTheLastBitOfAWideExtent) {
  const std::uint64_t extent = std::uint64_t{1} << 60;
  std::vector<QueueKey> keys(kFewKeys);
  for (std::size_t i = 0; i < kFewKeys; ++i) keys[i] = {{static_cast<std::int64_t>((kFewKeys - i) / 2)}, i};
  std::vector<QueueKey> sorted(kFewKeys);
  sort_few(keys.data(), kFewKeys, sorted.data(), 0, extent);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
}

}  // namespace
}  // namespace areal::sim
