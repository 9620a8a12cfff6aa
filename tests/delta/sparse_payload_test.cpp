// Sparse payloads: what is built, counted, joined, split and applied, and which dtype pass an operation belongs to.
#include "engine/delta/sparse_payload.h"

#include <gtest/gtest.h>

#include "engine/delta/bf16.h"
#include "engine/delta/change_mask.h"
#include "engine/delta/dtype_passes.h"

namespace areal::delta {
namespace {

using Mask = std::vector<std::uint8_t>;
using Indices = std::vector<std::int32_t>;
using Words = std::vector<std::uint32_t>;

RemapDimension cut(std::uint64_t train_extent, std::uint64_t train_start, std::uint64_t length,
                   std::uint64_t infer_extent, std::uint64_t infer_start) {
  return {train_extent, {train_start, train_start + length}, infer_extent, {infer_start, infer_start + length}};
}
RemapDimension whole(std::uint64_t extent) { return cut(extent, 0, extent, extent, 0); }

RemapBox rows_of_8x4(std::uint64_t first) { return {{cut(8, first, 4, 4, 0), whole(4)}}; }
SparseOp half_op(std::uint64_t first_row) { return {0, rows_of_8x4(first_row), DType::kF32}; }

Words counting(std::uint32_t elements) {
  Words words(elements);
  for (std::uint32_t i = 0; i < elements; ++i) words[i] = 100 + i;
  return words;
}

Mask mask_of(std::size_t elements, const std::vector<std::size_t>& changed) {
  Mask mask(elements, 0);
  for (const std::size_t i : changed) mask[i] = 1;
  return mask;
}

SparsePayloads built(const std::vector<SparseSource>& sources, const std::vector<SparseOp>& ops) {
  auto payloads = build_payloads(sources, ops);
  EXPECT_TRUE(payloads) << payloads.error().detail;
  return payloads ? *payloads : SparsePayloads{};
}

TEST(SparsePayload, BytesAreAnIndexAndAValueEach) {
  EXPECT_EQ(patch_bytes(3, DType::kBf16), 18U);
  EXPECT_EQ(patch_bytes(0, DType::kBf16), 0U);
  EXPECT_EQ(patch_bytes(2, DType::kF32), 16U);
}

TEST(SparsePayload, MaskedRowsOfOneOperation) {
  Words values(32, 0);
  values[16] = 1;
  values[21] = 2;
  values[0] = 9;
  const Mask mask = mask_of(32, {16, 21, 0});
  const auto payloads = built({{true, change_mask(mask), {DType::kF32, {}, values}}}, {half_op(4)});
  EXPECT_EQ(payloads.patches[0].indices, (Indices{0, 5}));
  EXPECT_EQ(payloads.patches[0].values, (Words{1, 2}));
}

// Both halves are sent, received and scattered; the receivers' rows are then the sender's.
TEST(SparsePayload, BothHalvesArriveAndNothingElse) {
  const Words before = counting(32);
  for (const auto& changed : {std::vector<std::size_t>{5, 22}, std::vector<std::size_t>{5}, {}}) {
    Words after = before;
    for (const std::size_t i : changed) after[i] += 1000;
    const Mask mask = mask_of(32, changed);
    const auto payloads = built({{true, change_mask(mask), {DType::kF32, {}, after}}}, {half_op(0), half_op(4)});
    const auto counts = round_counts(payloads.patches);
    ASSERT_TRUE(counts);
    EXPECT_EQ(*counts, (Indices{changed.empty() ? 0 : 1, changed.size() > 1 ? 1 : 0}));
    const SparsePatch joined = join_patches(DType::kF32, payloads.patches);
    const auto split = split_by_counts(*counts, view_of(joined));
    ASSERT_TRUE(split);
    for (std::size_t half = 0; half < 2; ++half) {
      const auto start = static_cast<std::ptrdiff_t>(16 * half);
      Words target(before.begin() + start, before.begin() + start + 16);
      ASSERT_TRUE(apply_patch((*split)[half], DType::kF32, std::span(target)));
      EXPECT_EQ(target, Words(after.begin() + start, after.begin() + start + 16));
    }
  }
}

// A slot that is left out would shift every later operation of this peer.
TEST(SparsePayload, MissingParametersKeepTheirSlot) {
  const Words values = counting(32);
  const Mask mask = mask_of(32, {0});
  const std::vector<SparseSource> sources{{true, change_mask(mask), {DType::kF32, {}, values}}, {}};
  SparseOp missing = half_op(0);
  missing.source = 1;
  const auto payloads = built(sources, {missing, half_op(0)});
  const auto counts = round_counts(payloads.patches);
  ASSERT_TRUE(counts);
  EXPECT_EQ(*counts, (Indices{0, 1}));
  missing.source = 2;
  EXPECT_FALSE(build_payloads(sources, std::vector<SparseOp>{missing}));
}

// Operations of one parameter are remapped together, wherever they stand; payloads stay in the plan's order.
TEST(SparsePayload, OperationsOfOneParameterAreOneGroup) {
  const Words first = counting(32);
  const Words second(32, 7);
  const Mask mask = mask_of(32, {4, 20});
  const std::vector<SparseSource> sources{{true, change_mask(mask), {DType::kF32, {}, first}},
                                          {true, change_mask(mask), {DType::kF32, {}, second}}};
  SparseOp other = half_op(4);
  other.source = 1;
  const auto payloads = built(sources, {half_op(0), other, half_op(4)});
  EXPECT_EQ(payloads.group_sizes, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(payloads.patches[0].indices, (Indices{4}));
  EXPECT_EQ(payloads.patches[2].indices, (Indices{4}));
  EXPECT_EQ(payloads.patches[0].values, (Words{104}));
  EXPECT_EQ(payloads.patches[1].values, (Words{7}));
  EXPECT_EQ(payloads.patches[2].values, (Words{120}));
}

TEST(SparsePayload, IndicesOfBothWidthsAndMasksSendTheSame) {
  const Words values{10, 20, 30, 40};
  const Indices narrow{1, 3};
  const std::vector<std::int64_t> wide{1, 3};
  const Mask mask{0, 1, 0, 1};
  const SparseOp op{0, {{whole(4)}}, DType::kF32};
  for (const ChangeSet& changes : {change_indices(narrow), change_indices(wide), change_mask(mask)}) {
    const auto payloads = built({{true, changes, {DType::kF32, {}, values}}}, {op});
    EXPECT_EQ(payloads.patches[0].indices, (Indices{1, 3}));
    EXPECT_EQ(payloads.patches[0].values, (Words{20, 40}));
  }
  const std::vector<SparseSource> floats{{true, {DType::kF32, mask, narrow, wide}, {DType::kF32, {}, values}}};
  const auto refused = build_payloads(floats, std::span(&op, 1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("bool, int32, or int64"), std::string::npos);
  const std::vector<SparseSource> short_mask{{true, change_mask(std::span(mask).first(3)), {DType::kF32, {}, values}}};
  EXPECT_FALSE(build_payloads(short_mask, std::span(&op, 1)));
}

TEST(SparsePayload, ValuesAreCastToTheWireDtype) {
  const float value = 1.00390625F;  // Half way between two bf16 values, even below.
  const Words singles{std::bit_cast<std::uint32_t>(value), 0};
  const std::vector<std::uint16_t> halves{0x3F81, 0x7FC1};
  const Indices all{0, 1};
  const RemapBox box{{whole(2)}};
  const SparseSource from_single{true, change_indices(all), {DType::kF32, {}, singles}};
  const SparseSource from_half{true, change_indices(all), {DType::kBf16, halves, {}}};
  const auto sent = [&box](const SparseSource& source, DType wire) {
    return built({source}, {{0, box, wire}}).patches[0].values;
  };
  EXPECT_EQ(sent(from_single, DType::kBf16), (Words{0x3F80, 0}));
  EXPECT_EQ(sent(from_single, DType::kF32), singles);
  EXPECT_EQ(sent(from_half, DType::kF32), (Words{0x3F810000, 0x7FC10000}));
  EXPECT_EQ(sent(from_half, DType::kBf16), (Words{0x3F81, 0x7FC1}));  // A NaN keeps its bits.
  const SparseOp as_double{0, box, DType::kF64};
  EXPECT_FALSE(build_payloads(std::span(&from_half, 1), std::span(&as_double, 1)));
}

// GAP-39: a count that wraps would shift everything behind it.
TEST(SparsePayload, CountsBeyondInt32AreRefused) {
  const auto most = wire_count(kIndexLimit - 1);
  ASSERT_TRUE(most);
  EXPECT_EQ(*most, 0x7FFFFFFF);
  EXPECT_FALSE(wire_count(kIndexLimit));
}

TEST(SparsePayload, IndexDtypeFollowsTheNumberOfElements) {
  EXPECT_EQ(index_dtype(kIndexLimit - 1), DType::kI32);
  EXPECT_EQ(index_dtype(kIndexLimit), DType::kI64);
}

TEST(SparsePayload, SplitKeepsEmptySlotsAndRefusesOtherSums) {
  const SparsePatch joined{DType::kF32, {1, 3, 0}, {20, 40, 5}};
  const auto split = split_by_counts(Indices{0, 2, 0, 1}, view_of(joined));
  ASSERT_TRUE(split);
  ASSERT_EQ(split->size(), 4U);
  EXPECT_TRUE((*split)[0].indices.empty());
  EXPECT_EQ((*split)[1].indices.size(), 2U);
  EXPECT_EQ((*split)[3].values[0], 5U);
  EXPECT_FALSE(split_by_counts(Indices{2}, view_of(joined)));
  EXPECT_FALSE(split_by_counts(Indices{4, -1}, view_of(joined)));
}

TEST(SparsePayload, JoinedBuffersShareNothingWithPayloads) {
  const std::vector<SparsePatch> patches{{DType::kF32, {1, 3}, {20, 40}}, {DType::kF32, {}, {}}};
  const SparsePatch joined = join_patches(DType::kF32, patches);
  EXPECT_NE(joined.indices.data(), patches[0].indices.data());
  EXPECT_NE(joined.values.data(), patches[0].values.data());
  EXPECT_EQ(joined.indices, patches[0].indices);
}

TEST(SparsePayload, PatchesOfOneTensorMerge) {
  const SparsePatch first{DType::kF32, {1, 6}, {11, 16}};
  const SparsePatch second{DType::kF32, {0, 5}, {10, 15}};
  const auto merged = merge_patches(view_of(first), view_of(second));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->indices, (Indices{0, 1, 5, 6}));
  EXPECT_EQ(merged->values, (Words{10, 11, 15, 16}));
  EXPECT_FALSE(merge_patches(view_of(first), view_of(first)));
}

TEST(SparseApply, WritesInPlaceAndNothingIfEmpty) {
  Words target{0, 0, 0, 0};
  ASSERT_TRUE(apply_patch({DType::kF32, Indices{1, 3}, Words{20, 40}}, DType::kF32, std::span(target)));
  EXPECT_EQ(target, (Words{0, 20, 0, 40}));
  ASSERT_TRUE(apply_patch({DType::kF32, {}, {}}, DType::kF32, std::span(target)));
  EXPECT_EQ(target, (Words{0, 20, 0, 40}));
  std::vector<std::uint16_t> halves(16, 0);
  const Indices diagonal{0, 5, 15};
  const Words ones{0x3F80, 0x4000, 0x4040};
  ASSERT_TRUE(apply_patch({DType::kBf16, diagonal, ones}, DType::kBf16, std::span(halves)));
  EXPECT_EQ(halves[5], 0x4000);
  EXPECT_EQ(halves[15], 0x4040);
}

TEST(SparseApply, TargetsWithGapsAreWrittenAroundThem) {
  Words buffer(16, 0);  // 4 x 4, every second column: 4 x 2.
  const TargetPlace columns{0, {4, 2}, {4, 2}};
  const Indices indices{0, 3, 7};
  const Words values{1, 2, 3};
  ASSERT_TRUE(apply_patch({DType::kF32, indices, values}, DType::kF32, std::span(buffer), columns));
  EXPECT_EQ(buffer, (Words{1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0}));
  const Indices beyond{8};
  EXPECT_FALSE(apply_patch({DType::kF32, beyond, Words{1}}, DType::kF32, std::span(buffer), columns));
  const TargetPlace leaves{4, {4, 2}, {4, 2}};
  EXPECT_FALSE(apply_patch({DType::kF32, indices, values}, DType::kF32, std::span(buffer), leaves));
}

// A patch is from a peer: what is wrong must not touch one element.
TEST(SparseApply, WrongPatchesChangeNothing) {
  Words target{1, 2, 3, 4};
  const auto refused = [&target](DType dtype, const Indices& indices, const Words& values) {
    const Status status = apply_patch({dtype, indices, values}, DType::kBf16, std::span(target));
    return !status && target == Words{1, 2, 3, 4};
  };
  EXPECT_TRUE(refused(DType::kBf16, {0, 4}, {9, 9}));
  EXPECT_TRUE(refused(DType::kBf16, {0, -1}, {9, 9}));
  EXPECT_TRUE(refused(DType::kBf16, {2, 1, 2}, {9, 9, 9}));
  EXPECT_TRUE(refused(DType::kBf16, {1, 1}, {9, 9}));
  EXPECT_TRUE(refused(DType::kBf16, {0, 1}, {9}));
  EXPECT_TRUE(refused(DType::kBf16, {0}, {0x10000}));
  EXPECT_TRUE(refused(DType::kF32, {0}, {9}));
  std::vector<std::uint16_t> halves(4, 0);
  EXPECT_FALSE(apply_patch({DType::kF32, Indices{0}, Words{9}}, DType::kF32, std::span(halves)));
  // A 32-bit word is no element of 8 bytes, wherever it would land.
  EXPECT_FALSE(apply_patch({DType::kF64, Indices{0}, Words{9}}, DType::kF64, std::span(target)));
  EXPECT_FALSE(apply_patch({DType::kF64, Indices{0}, Words{9}}, DType::kF64, std::span(target), {0, {2}, {2}}));
  EXPECT_FALSE(apply_patch({DType::kU8, Indices{0}, Words{0x100}}, DType::kU8, std::span(target)));
  EXPECT_EQ(target, (Words{1, 2, 3, 4}));
}

// Indices address the whole live shard, not the slice that the operation covers.
TEST(SparseApply, SlicesLandAtTheirPlaceInTheFullShard) {
  const Words values = counting(4);
  const Indices changed{1, 3};
  const SparseOp op{0, {{cut(4, 0, 4, 8, 4)}}, DType::kF32};
  const auto payloads = built({{true, change_indices(changed), {DType::kF32, {}, values}}}, {op});
  EXPECT_EQ(payloads.patches[0].indices, (Indices{5, 7}));
  Words target(8, 0);
  ASSERT_TRUE(apply_patch(view_of(payloads.patches[0]), DType::kF32, std::span(target)));
  EXPECT_EQ(target, (Words{0, 0, 0, 0, 0, 101, 0, 103}));
}

TEST(DtypePasses, UnionIsByNameWhateverTheOrderOfRanks) {
  const std::vector<DType> both{DType::kBf16, DType::kF32};
  EXPECT_EQ(*wire_dtype_union(std::vector<std::vector<DType>>{{}, {DType::kF32, DType::kBf16}}), both);
  EXPECT_EQ(*wire_dtype_union(std::vector<std::vector<DType>>{both, {DType::kF32, DType::kBf16}}), both);
  EXPECT_EQ(*wire_dtype_union(std::vector<std::vector<DType>>{{DType::kF32}, {DType::kF16}, {DType::kBf16}}),
            (std::vector<DType>{DType::kBf16, DType::kF16, DType::kF32}));
  EXPECT_EQ(*wire_dtype_union(std::vector<std::vector<DType>>{{DType::kBf16}, {DType::kBf16}}),
            (std::vector<DType>{DType::kBf16}));
  EXPECT_FALSE(wire_dtype_union(std::vector<std::vector<DType>>{{}, {}}));
}

// A rank without operations of a dtype that skips its pass leaves the others waiting.
TEST(DtypePasses, EveryAgreedDtypeHasAPass) {
  const std::vector<DType> agreed{DType::kBf16, DType::kF32};
  const auto sender = dtype_passes(agreed, std::vector<DType>{DType::kBf16});
  ASSERT_TRUE(sender);
  ASSERT_EQ(sender->size(), 2U);
  EXPECT_EQ((*sender)[0].ops, (std::vector<std::size_t>{0}));
  EXPECT_TRUE((*sender)[1].ops.empty());
  const auto mixed = dtype_passes(agreed, std::vector<DType>{DType::kBf16, DType::kF32, DType::kBf16, DType::kF32});
  ASSERT_TRUE(mixed);
  EXPECT_EQ((*mixed)[0].ops, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ((*mixed)[1].ops, (std::vector<std::size_t>{1, 3}));
  EXPECT_FALSE(dtype_passes(agreed, std::vector<DType>{DType::kF16}));
}

}  // namespace
}  // namespace areal::delta
