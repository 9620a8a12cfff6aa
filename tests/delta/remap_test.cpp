// Indices of a training shard in the infer shard: boxes, orders, refusals, and the two paths.
#include "engine/delta/remap.h"

#include <gtest/gtest.h>

namespace areal::delta {
namespace {

using Positions = std::vector<std::uint64_t>;
using Indices = std::vector<std::int32_t>;

// One dimension: elements [train_start, train_start + length) of train_extent, at infer_start of infer_extent.
RemapDimension cut(std::uint64_t train_extent, std::uint64_t train_start, std::uint64_t length,
                   std::uint64_t infer_extent, std::uint64_t infer_start) {
  return {train_extent, {train_start, train_start + length}, infer_extent, {infer_start, infer_start + length}};
}
RemapDimension whole(std::uint64_t extent) { return cut(extent, 0, extent, extent, 0); }

Remapped remap(const RemapBox& box, const Indices& indices, IndexOrder order = IndexOrder::kScan) {
  const auto result = remap_group(std::span(&box, 1), indices, order);
  EXPECT_TRUE(result);
  return result ? result->front() : Remapped{};
}

// Ascending input by both paths; the result is that of the general one.
Indices both_paths(const RemapBox& box, const Indices& indices) {
  const Remapped fast = remap(box, indices);
  const Remapped general = remap(box, indices, IndexOrder::kUnknown);
  EXPECT_EQ(fast.path, RemapPath::kRanges);
  EXPECT_EQ(general.path, RemapPath::kElements);
  EXPECT_EQ(fast.indices, general.indices);
  EXPECT_EQ(fast.sources, general.sources);
  return general.indices;
}

TEST(Remap, WholeShardsKeepTheirIndices) {
  EXPECT_EQ(both_paths({{whole(4), whole(4)}}, {0, 3, 7}), (Indices{0, 3, 7}));
  EXPECT_EQ(both_paths({{whole(3), whole(4)}}, {0, 5, 11}), (Indices{0, 5, 11}));
  EXPECT_EQ(both_paths({{whole(2), whole(3), whole(4)}}, {0, 13, 23}), (Indices{0, 13, 23}));
  EXPECT_EQ(both_paths({{whole(10)}}, {0, 9}), (Indices{0, 9}));
  EXPECT_EQ(both_paths({}, {0}), (Indices{0}));  // A scalar.
}

TEST(Remap, RowsThatAreNotMovedAreDropped) {
  EXPECT_EQ(both_paths({{cut(4, 0, 2, 2, 0), whole(4)}}, {0, 3, 8, 12}), (Indices{0, 3}));
  EXPECT_EQ(both_paths({{cut(8, 4, 4, 4, 0), whole(4)}}, {16, 20}), (Indices{0, 4}));
  EXPECT_EQ(both_paths({{cut(4, 2, 2, 2, 0), whole(4)}}, {0, 1, 2}), Indices{});
  EXPECT_EQ(both_paths({{cut(10, 4, 4, 4, 0)}}, {2, 5, 8}), (Indices{1}));
}

TEST(Remap, BoxesOfOneParameterShareOneSearch) {
  const std::vector<RemapBox> halves{{{cut(10, 0, 4, 4, 0)}}, {{cut(10, 4, 6, 6, 0)}}};
  const auto line = remap_group(halves, Indices{1, 3, 5, 8});
  ASSERT_TRUE(line);
  EXPECT_EQ((*line)[0].indices, (Indices{1, 3}));
  EXPECT_EQ((*line)[1].indices, (Indices{1, 4}));
  const std::vector<RemapBox> rows{{{cut(8, 0, 4, 4, 0), whole(4)}}, {{cut(8, 4, 4, 4, 0), whole(4)}}};
  const auto slabs = remap_group(rows, Indices{0, 3, 16, 21, 29});
  ASSERT_TRUE(slabs);
  EXPECT_EQ((*slabs)[0].indices, (Indices{0, 3}));
  EXPECT_EQ((*slabs)[1].indices, (Indices{0, 5, 13}));
  for (const auto* group : {&*line, &*slabs}) {
    for (const Remapped& remapped : *group) EXPECT_EQ(remapped.path, RemapPath::kRanges);
  }
}

const Indices kColumnChanges{0, 1, 2, 5, 6, 7, 8, 13, 16, 20, 23};

TEST(Remap, ColumnsComeWithTheirSourcePositions) {
  const RemapBox columns{{whole(4), cut(6, 1, 3, 3, 0)}};
  EXPECT_EQ(both_paths(columns, kColumnChanges), (Indices{0, 1, 3, 4, 6, 10}));
  EXPECT_EQ(remap(columns, kColumnChanges).sources, (Positions{1, 2, 5, 6, 7, 9}));
}

TEST(Remap, RectanglesLandInsideWiderShards) {
  const RemapBox rectangle{{cut(6, 1, 4, 4, 0), cut(8, 2, 4, 8, 3)}};
  EXPECT_EQ(both_paths(rectangle, {5, 10, 11, 20, 21, 26, 35, 45}), (Indices{3, 4, 13, 14, 19, 28}));
}

TEST(Remap, ThreeBoxesOfColumns) {
  const std::vector<RemapBox> boxes{
      {{whole(4), cut(6, 1, 3, 3, 0)}}, {{whole(4), cut(6, 4, 2, 2, 0)}}, {{cut(4, 0, 0, 4, 0), cut(6, 0, 6, 6, 0)}}};
  const auto group = remap_group(boxes, kColumnChanges);
  ASSERT_TRUE(group);
  EXPECT_EQ((*group)[0].indices, (Indices{0, 1, 3, 4, 6, 10}));
  EXPECT_EQ((*group)[1].indices, (Indices{1, 4, 7}));
  EXPECT_EQ((*group)[1].sources, (Positions{3, 8, 10}));
  EXPECT_TRUE((*group)[2].indices.empty());
  for (const Remapped& remapped : *group) EXPECT_EQ(remapped.path, RemapPath::kRanges);
}

TEST(Remap, UnsortedInputKeepsItsOrder) {
  const RemapBox rows{{cut(8, 4, 4, 4, 0), whole(4)}};
  const Remapped remapped = remap(rows, {21, 16, 5});
  EXPECT_EQ(remapped.indices, (Indices{5, 0}));
  EXPECT_EQ(remapped.sources, (Positions{0, 1}));
  EXPECT_EQ(remapped.path, RemapPath::kElements);
}

// A caller's promise is believed without looking; if it is false nothing outside the box may come out.
TEST(Remap, AnOrderThatIsPromisedIsNotScanned) {
  const RemapBox rows{{cut(8, 4, 4, 4, 0), whole(4)}};
  const Remapped remapped = remap(rows, {16, 31, 21, 16, 20}, IndexOrder::kAscending);
  EXPECT_EQ(remapped.path, RemapPath::kRanges);
  for (const std::int32_t index : remapped.indices) {
    EXPECT_GE(index, 0);
    EXPECT_LT(index, 16);
  }
}

TEST(Remap, ManyRowsTakeTheGeneralPath) {
  const RemapBox most{{whole(kMostRuns), cut(2, 1, 1, 1, 0)}};
  const RemapBox more{{whole(kMostRuns + 1), cut(2, 1, 1, 1, 0)}};
  EXPECT_EQ(remap(most, {1, 2, 16383}).path, RemapPath::kRanges);
  const Remapped general = remap(more, {1, 2, 16385});
  EXPECT_EQ(general.path, RemapPath::kElements);
  EXPECT_EQ(general.indices, (Indices{0, 8192}));
  EXPECT_EQ(remap(most, {1, 2, 16383}).indices, (Indices{0, 8191}));
}

// GAP-10: a source index beyond int32 is fine as long as where it lands fits.
TEST(Remap, WideSourcesAreNarrowedByTheBox) {
  const std::uint64_t rows = std::uint64_t{1} << 22;
  const RemapBox last_rows{{cut(rows, rows - 2, 2, 2, 0), whole(1024)}};
  const std::vector<std::int64_t> indices{5, (std::int64_t{1} << 32) - 2047, (std::int64_t{1} << 32) - 1};
  for (const IndexOrder order : {IndexOrder::kScan, IndexOrder::kUnknown}) {
    const auto group = remap_group(std::span(&last_rows, 1), indices, order);
    ASSERT_TRUE(group);
    EXPECT_EQ(group->front().indices, (Indices{1, 2047}));
  }
}

Errc refusal(const RemapBox& box) {
  const Status status = check_box(box);
  EXPECT_FALSE(status);
  return status ? Errc::kIo : status.error().code;
}

TEST(Remap, StridedSlicesAreRefused) {
  RemapBox box{{whole(8)}};
  box.dims[0].train.stride = 2;
  EXPECT_EQ(refusal(box), Errc::kUnsupported);
  EXPECT_NE(check_box(box).error().detail.find("strided"), std::string::npos);
  EXPECT_FALSE(remap_group(std::span(&box, 1), Indices{0}));
}

TEST(Remap, InferShardsBeyondInt32AreRefused) {
  const std::uint64_t elements = (std::uint64_t{1} << 31) + 8;
  const RemapBox box{{cut(8, 0, 8, elements, 0)}};
  EXPECT_EQ(refusal(box), Errc::kInvalid);
  EXPECT_NE(check_box(box).error().detail.find("2**31"), std::string::npos);
  EXPECT_FALSE(check_box({{cut(8, 0, 8, kIndexLimit, 0)}}));
  EXPECT_TRUE(check_box({{cut(8, 0, 8, kIndexLimit - 1, 0)}}));
  const std::uint64_t side = std::uint64_t{1} << 33;  // The product is 0 in 64 bits.
  EXPECT_FALSE(check_box({{cut(1, 0, 1, side, 0), cut(1, 0, 1, side, 0)}}));
}

TEST(Remap, BoxesAndIndicesThatDoNotFitAreRefused) {
  EXPECT_FALSE(check_box({{cut(8, 6, 4, 8, 0)}}));                    // Leaves the training shard.
  EXPECT_FALSE(check_box({{cut(8, 0, 4, 8, 6)}}));                    // Leaves the infer shard.
  EXPECT_FALSE(check_box({{RemapDimension{8, {0, 4}, 8, {0, 3}}}}));  // Lengths differ.
  EXPECT_FALSE(check_box({{RemapDimension{8, {4, 3}, 8, {4, 3}}}}));  // Backwards.
  const RemapBox line{{whole(8)}};
  EXPECT_FALSE(remap_group(std::span(&line, 1), Indices{0, 8}));
  EXPECT_FALSE(remap_group(std::span(&line, 1), Indices{3, -1}));
  const std::vector<RemapBox> unequal{{{whole(8)}}, {{whole(9)}}};
  EXPECT_FALSE(remap_group(unequal, Indices{0}));
}

}  // namespace
}  // namespace areal::delta
