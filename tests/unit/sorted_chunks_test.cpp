// Sorted chunks against a map: the same entries in the same order after any insertions and removals.
#include "engine/base/sorted_chunks.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/base/dense.h"
#include "engine/base/rng.h"

namespace areal {
namespace {

void expect_equal(const SortedChunks<int, int>& chunks, const std::map<int, int>& map) {
  ASSERT_EQ(chunks.size(), map.size());
  auto expected = map.begin();
  for (const auto& entry : chunks) {
    ASSERT_EQ(entry.key, expected->first);
    ASSERT_EQ(entry.value, expected->second);
    ++expected;
  }
}

TEST(SortedChunks, HoldWhatAMapHolds) {
  for (const int range : {5, 300, 20'000}) {
    SortedChunks<int, int> chunks;
    std::map<int, int> map;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t word = mix_words(i, static_cast<std::uint64_t>(range));
      const int key = static_cast<int>((word >> 8) % static_cast<std::uint64_t>(range));
      if (word % 3 != 0) {
        const auto [value, made] = chunks.insert(key, static_cast<int>(i));
        EXPECT_EQ(made, map.emplace(key, static_cast<int>(i)).second);
        EXPECT_EQ(*value, map.at(key));
      } else {
        EXPECT_EQ(chunks.erase(key), map.erase(key) == 1);
      }
      const int* found = chunks.find(key);
      ASSERT_EQ(found != nullptr, map.contains(key));
    }
    expect_equal(chunks, map);
    const std::size_t removed = chunks.erase_if([](const auto& entry) { return entry.key % 2 == 0; });
    EXPECT_EQ(removed, std::erase_if(map, [](const auto& entry) { return entry.first % 2 == 0; }));
    expect_equal(chunks, map);
  }
}

TEST(SortedChunks, NothingIsThereAfterClear) {
  SortedChunks<int, int> chunks;
  for (int i = 0; i < 1000; ++i) chunks.insert(i, i);
  chunks.clear();
  EXPECT_TRUE(chunks.empty());
  EXPECT_EQ(chunks.begin(), chunks.end());
  EXPECT_EQ(chunks.find(3), nullptr);
  EXPECT_FALSE(chunks.erase(3));
}

TEST(Dense, KeepsTheSumOfItsValuesAndTheirPlaces) {
  Dense<std::uint64_t> dense(3);
  const Digest128 zeros = dense.sum();
  dense.set(1, 7);
  EXPECT_NE(dense.sum(), zeros);
  EXPECT_EQ(dense.sum(), dense.recomputed_sum());
  dense.set(1, 0);
  dense.set(2, 7);
  const Digest128 at_two = dense.sum();
  dense.set(2, 0);
  EXPECT_EQ(dense.sum(), zeros);
  dense.set(1, 7);
  EXPECT_NE(dense.sum(), at_two);
}

TEST(Dense, IsWrittenAndReadWhole) {
  Dense<std::uint64_t> dense(4, 9);
  dense.edit(2, [](std::uint64_t& value) { value = 11; });
  StateWriter writer;
  writer.value(dense);
  EXPECT_EQ(writer.words().size(), 5U);
  Dense<std::uint64_t> read;
  StateReader reader(writer.words());
  reader.value(read);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(read.sum(), dense.sum());
  EXPECT_EQ(read[2], 11U);
}

}  // namespace
}  // namespace areal
