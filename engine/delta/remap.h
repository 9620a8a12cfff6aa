// Flat indices of a training shard turned into flat indices of an infer shard, box by box.
//
// One operation of a transfer plan moves a box: `train` slices of the training shard land on `infer` slices of the
// infer shard. Indices outside the box are dropped; each one inside moves by c' = c - train.start + infer.start in
// every dimension and is flattened anew in the infer shard's own extents (spec/transfer.md 1.11). Results address the
// full live infer shard, not the slice.
//
// Ascending input is cut by range search: a box is a list of runs that are contiguous on both sides (one run for 1-D
// and for whole rows, one a row for columns and rectangles). Other input, and boxes of more than kMostRuns runs, take
// the general path, element by element; results and their order are the same. Pure functions; safe on any thread.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::delta {

// Rows beyond which a box is no longer cut by range search. Source: the reference's limit.
inline constexpr std::uint64_t kMostRuns = 8192;

// An infer shard has fewer elements than this: wire indices are int32.
inline constexpr std::uint64_t kIndexLimit = std::uint64_t{1} << 31;

// Elements start, start + stride, ... below end, in one dimension of a shard.
struct Slice {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t stride = 1;
  constexpr bool operator==(const Slice&) const = default;
};

struct RemapDimension {
  std::uint64_t train_extent = 0;  // Of the whole training shard.
  Slice train;
  std::uint64_t infer_extent = 0;  // Of the whole infer shard.
  Slice infer;
};

// Outermost dimension first; none at all is a scalar.
struct RemapBox {
  std::vector<RemapDimension> dims;
};

enum class RemapPath : std::uint8_t { kRanges, kElements };
constexpr std::array<std::string_view, 2> enum_names(RemapPath /*tag*/) { return {"ranges", "elements"}; }

// What one box took of the input, in the order of the input.
struct Remapped {
  std::vector<std::uint64_t> sources;  // Positions in the list of input indices.
  std::vector<std::int32_t> indices;   // In the infer shard; as many as sources.
  RemapPath path = RemapPath::kElements;
};

// Refuses strides other than 1 (kUnsupported, "strided"), slices outside their extents or of different lengths, and
// shards whose elements cannot be counted: infer shards of 2^31 and more, training shards of 2^63 and more.
Status check_box(const RemapBox& box);

// Elements of the whole training shard. REQUIRES: check_box() accepted it.
std::uint64_t train_elements(const RemapBox& box);
// Elements of the whole infer shard. REQUIRES: check_box() accepted it.
std::uint64_t infer_elements(const RemapBox& box);

enum class IndexOrder : std::uint8_t {
  kScan,       // Look whether the input is ascending.
  kAscending,  // The caller says so; what is not ascending then gives a meaningless but safe result.
  kUnknown,    // Take the general path.
};

// Boxes of one parameter together, one result a box: the input is scanned once. Refuses what check_box refuses, boxes
// of training shards of unequal extents, and indices outside the training shard.
Result<std::vector<Remapped>> remap_group(std::span<const RemapBox> boxes, std::span<const std::int32_t> indices,
                                          IndexOrder order = IndexOrder::kScan);
Result<std::vector<Remapped>> remap_group(std::span<const RemapBox> boxes, std::span<const std::int64_t> indices,
                                          IndexOrder order = IndexOrder::kScan);

}  // namespace areal::delta
