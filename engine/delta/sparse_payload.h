// What a delta puts on the wire: per operation int32 indices and value bits, in two rounds per dtype pass.
//
// Round 1 is one int32 count for each operation, in plan order, zeros kept; round 2 is all indices and all values of a
// peer, one after the other, and is left out on both sides if the counts sum up to zero (spec/transfer.md 1.11,
// INV-DELTA-NNZ-SLOTS). Values are bits in the wire dtype, one 32-bit word each, 16-bit dtypes in the low half. Indices
// address the full live infer shard. Pure functions; safe on any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/result.h"
#include "engine/delta/remap.h"

namespace areal::delta {

// Which elements of a training shard changed; the list that `dtype` names is looked at, the others are not. A view.
struct ChangeSet {
  DType dtype = DType::kBool;  // kBool: mask; kI32: narrow; kI64: wide; any other is refused.
  std::span<const std::uint8_t> mask;
  std::span<const std::int32_t> narrow;
  std::span<const std::int64_t> wide;
};

inline ChangeSet change_mask(std::span<const std::uint8_t> mask) { return {DType::kBool, mask, {}, {}}; }
inline ChangeSet change_indices(std::span<const std::int32_t> indices) { return {DType::kI32, {}, indices, {}}; }
inline ChangeSet change_indices(std::span<const std::int64_t> indices) { return {DType::kI64, {}, {}, indices}; }

// A flat tensor by its bits: `half` or `word`, the other is empty. 16-bit dtypes in `word` lie in the low half. A view.
struct BitsView {
  DType dtype = DType::kBf16;
  std::span<const std::uint16_t> half;
  std::span<const std::uint32_t> word;

  [[nodiscard]] std::uint64_t size() const { return half.empty() ? word.size() : half.size(); }
  [[nodiscard]] std::uint32_t at(std::uint64_t index) const { return half.empty() ? word[index] : half[index]; }
};

// One parameter as the sender holds it.
struct SparseSource {
  bool present = false;  // Without it every operation of this parameter keeps its slot, with nothing in it.
  ChangeSet changes;
  BitsView values;
};

struct SparseOp {
  std::size_t source = 0;  // Index into the list of sources.
  RemapBox box;
  DType wire = DType::kBf16;
};

struct SparsePatch {
  DType dtype = DType::kBf16;
  std::vector<std::int32_t> indices;
  std::vector<std::uint32_t> values;  // As many as indices.
};

struct SparsePatchView {
  DType dtype = DType::kBf16;
  std::span<const std::int32_t> indices;
  std::span<const std::uint32_t> values;
};

inline SparsePatchView view_of(const SparsePatch& patch) { return {patch.dtype, patch.indices, patch.values}; }
// On the wire: an int32 and a value for each update.
constexpr std::uint64_t patch_bytes(std::uint64_t updates, DType dtype) { return updates * (4 + size_of(dtype)); }

struct SparsePayloads {
  std::vector<SparsePatch> patches;      // One for each operation, in their order.
  std::vector<std::size_t> group_sizes;  // How many operations each remap took, by source in the order of first use.
};

// Takes the changed elements of every operation's box and casts them to its wire dtype (storage kept bit by bit if it
// is the same; else bf16 and fp32 into each other). Refuses change sets of other dtypes, a mask or values that do not
// have the training shard's length, casts of other dtypes, boxes that remap_group refuses and operations without a
// source. 64-bit indices are narrowed only after the remap into an infer shard of fewer than 2^31 elements (GAP-10).
Result<SparsePayloads> build_payloads(std::span<const SparseSource> sources, std::span<const SparseOp> ops,
                                      IndexOrder order = IndexOrder::kScan);

// One entry of round 1. Refuses 2^31 updates and more (GAP-39).
Result<std::int32_t> wire_count(std::uint64_t updates);
// Round 1 for one peer. Refuses what wire_count refuses.
Result<std::vector<std::int32_t>> round_counts(std::span<const SparsePatch> patches);

// Round 2 for one peer: fresh copies that share nothing with `patches`.
// REQUIRES: all patches have dtype `dtype`.
SparsePatch join_patches(DType dtype, std::span<const SparsePatch> patches);

// The receiver's reverse: one view for each count. Refuses negative counts and a sum that is not the joined length.
Result<std::vector<SparsePatchView>> split_by_counts(std::span<const std::int32_t> counts,
                                                     const SparsePatchView& joined);

// Two patches of one tensor as one, ascending by index. Refuses different dtypes and an index that both or one hold
// twice.
Result<SparsePatch> merge_patches(const SparsePatchView& first, const SparsePatchView& second);

// Strided place of a flat target inside a buffer, outermost dimension first.
struct TargetPlace {
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> extent;
  std::vector<std::uint64_t> stride;  // As many as extent.
};

// Whether every word holds one element of `dtype`: it has at most 4 bytes, and bits beyond its own are 0.
bool fits_dtype(DType dtype, std::span<const std::uint32_t> words);

// Refuses another dtype than `dtype`, values that do not fit it, unequal lengths, an index outside `elements` and one
// that occurs twice (INV-DELTA-IDX).
Status check_patch(const SparsePatchView& patch, DType dtype, std::uint64_t elements);

// flat(target)[index] = value, in place; all of it or, if refused, nothing. An empty patch changes nothing. Refuses
// what check_patch refuses, and a dtype that does not fit the target's words.
Status apply_patch(const SparsePatchView& patch, DType dtype, std::span<std::uint16_t> target);
Status apply_patch(const SparsePatchView& patch, DType dtype, std::span<std::uint32_t> target);
// The same for a target that is not contiguous. Refuses also a place outside `buffer`.
Status apply_patch(const SparsePatchView& patch, DType dtype, std::span<std::uint32_t> buffer,
                   const TargetPlace& place);

}  // namespace areal::delta
