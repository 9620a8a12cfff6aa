// A delta against a dense copy, for random shards, boxes and changes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "engine/base/rng.h"
#include "engine/delta/sparse_payload.h"

namespace areal::delta {
namespace {

constexpr std::uint64_t kMostExtent = 7;

// Slices of one length in two extents; whole dimensions are as likely as parts, so that both kinds of run occur.
RemapDimension random_dimension(Rng& rng, std::uint64_t train_extent) {
  RemapDimension dim;
  dim.train_extent = train_extent;
  if (rng.draw_chance(1, 2)) {
    dim.train = {0, train_extent};
    dim.infer_extent = train_extent;
    dim.infer = dim.train;
    return dim;
  }
  const std::uint64_t length = rng.draw_below(train_extent + 1);
  const std::uint64_t before = rng.draw_below(3);
  const std::uint64_t behind = rng.draw_below(3);
  dim.train.start = rng.draw_below(train_extent - length + 1);
  dim.train.end = dim.train.start + length;
  dim.infer_extent = before + length + behind;
  dim.infer = {before, before + length};
  return dim;
}

struct Case {
  std::vector<std::uint64_t> extents;
  std::vector<RemapBox> boxes;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
  std::vector<std::int32_t> changed;
};

Case random_case(std::uint64_t seed) {
  Rng rng(seed);
  Case made;
  const std::uint64_t rank = 1 + rng.draw_below(3);
  std::uint64_t elements = 1;
  for (std::uint64_t i = 0; i < rank; ++i) {
    made.extents.push_back(1 + rng.draw_below(kMostExtent));
    elements *= made.extents.back();
  }
  const std::uint64_t boxes = 1 + rng.draw_below(3);
  for (std::uint64_t i = 0; i < boxes; ++i) {
    RemapBox box;
    for (const std::uint64_t extent : made.extents) box.dims.push_back(random_dimension(rng, extent));
    made.boxes.push_back(box);
  }
  const std::uint64_t one_in = 1 + rng.draw_below(6);
  for (std::uint64_t i = 0; i < elements; ++i) {
    const bool changes = rng.draw_chance(1, one_in);
    made.before.push_back(static_cast<std::uint32_t>(rng.draw_below(1000)));
    made.after.push_back(made.before.back() + (changes ? 1000U : 0U));
    if (changes) made.changed.push_back(static_cast<std::int32_t>(i));
  }
  return made;
}

// Copies the box element by element, coordinate by coordinate.
void dense_copy(const RemapBox& box, const std::vector<std::uint32_t>& source, std::vector<std::uint32_t>& target) {
  for (std::uint64_t flat = 0; flat < source.size(); ++flat) {
    std::uint64_t rest = flat;
    std::uint64_t place = 0;
    std::uint64_t step = 1;
    bool is_inside = true;
    for (std::size_t i = box.dims.size(); i-- > 0;) {
      const RemapDimension& dim = box.dims[i];
      const std::uint64_t coordinate = rest % dim.train_extent;
      rest /= dim.train_extent;
      is_inside = is_inside && coordinate >= dim.train.start && coordinate < dim.train.end;
      place += (coordinate + dim.infer.start - dim.train.start) * step;
      step *= dim.infer_extent;
    }
    if (is_inside) target[place] = source[flat];
  }
}

// Sends the changes as masks, as int32 or as int64 indices, through joining and splitting.
std::vector<std::vector<std::uint32_t>> by_delta(const Case& made, const ChangeSet& changes) {
  const SparseSource source{true, changes, {DType::kF32, {}, made.after}};
  std::vector<SparseOp> ops;
  for (const RemapBox& box : made.boxes) ops.push_back({0, box, DType::kF32});
  const auto payloads = build_payloads(std::span(&source, 1), ops);
  RC_ASSERT(payloads.has_value());
  const auto counts = round_counts(payloads->patches);
  RC_ASSERT(counts.has_value());
  const SparsePatch joined = join_patches(DType::kF32, payloads->patches);
  const auto split = split_by_counts(*counts, view_of(joined));
  RC_ASSERT(split.has_value());
  std::vector<std::vector<std::uint32_t>> targets;
  for (std::size_t i = 0; i < made.boxes.size(); ++i) {
    targets.emplace_back(infer_elements(made.boxes[i]), 0xFFFFU);
    dense_copy(made.boxes[i], made.before, targets.back());
    RC_ASSERT(apply_patch((*split)[i], DType::kF32, std::span(targets.back())).has_value());
  }
  return targets;
}

RC_GTEST_PROP(SparseProperty, DeltaEqualsDenseCopy, (std::uint64_t seed)) {
  const Case made = random_case(seed);
  std::vector<std::vector<std::uint32_t>> wanted;
  for (const RemapBox& box : made.boxes) {
    wanted.emplace_back(infer_elements(box), 0xFFFFU);
    dense_copy(box, made.after, wanted.back());
  }
  std::vector<std::uint8_t> mask(made.after.size(), 0);
  for (const std::int32_t i : made.changed) mask[static_cast<std::size_t>(i)] = 1;
  const std::vector<std::int64_t> wide(made.changed.begin(), made.changed.end());
  RC_ASSERT(by_delta(made, change_mask(mask)) == wanted);
  RC_ASSERT(by_delta(made, change_indices(made.changed)) == wanted);
  RC_ASSERT(by_delta(made, change_indices(wide)) == wanted);
  std::vector<std::int32_t> reversed = made.changed;
  std::ranges::reverse(reversed);
  RC_ASSERT(by_delta(made, change_indices(reversed)) == wanted);
}

RC_GTEST_PROP(SparseProperty, RangeSearchEqualsTheGeneralPath, (std::uint64_t seed)) {
  const Case made = random_case(seed);
  const auto fast = remap_group(made.boxes, made.changed, IndexOrder::kScan);
  const auto general = remap_group(made.boxes, made.changed, IndexOrder::kUnknown);
  RC_ASSERT(fast.has_value());
  RC_ASSERT(general.has_value());
  for (std::size_t i = 0; i < made.boxes.size(); ++i) {
    RC_ASSERT((*fast)[i].path == RemapPath::kRanges);
    RC_ASSERT((*general)[i].path == RemapPath::kElements);
    RC_ASSERT((*fast)[i].indices == (*general)[i].indices);
    RC_ASSERT((*fast)[i].sources == (*general)[i].sources);
  }
}

}  // namespace
}  // namespace areal::delta
