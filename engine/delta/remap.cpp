// Range search over contiguous runs where it pays, element by element otherwise.
#include "engine/delta/remap.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/base/check.h"

namespace areal::delta {
namespace {

// Training shards are indexed by int64.
constexpr std::uint64_t kTrainLimit = std::uint64_t{1} << 63;

// `product * factor`, or nothing if that is `limit` or more; an empty dimension counts as one, so that no part of the
// product overflows either.
std::optional<std::uint64_t> product_below(std::uint64_t product, std::uint64_t factor, std::uint64_t limit) {
  const std::uint64_t at_least_one = std::max<std::uint64_t>(factor, 1);
  if (at_least_one > (limit - 1) / product) return std::nullopt;
  return product * at_least_one;
}

Status check_slice(const Slice& slice, std::uint64_t extent) {
  if (slice.stride != 1) {
    return Error{Errc::kUnsupported, fmt::format("strided slices are not supported: stride {}", slice.stride)};
  }
  if (slice.start <= slice.end && slice.end <= extent) return Unit{};
  return Error{Errc::kInvalid, fmt::format("slice {}..{} of an extent of {}", slice.start, slice.end, extent)};
}

// Where boxes lie in flat order: elements that one step along a dimension skips, on either side.
struct Steps {
  std::vector<std::uint64_t> train;
  std::vector<std::uint64_t> infer;
};

Steps steps_of(const RemapBox& box) {
  Steps steps{std::vector<std::uint64_t>(box.dims.size(), 1), std::vector<std::uint64_t>(box.dims.size(), 1)};
  for (std::size_t i = box.dims.size(); i-- > 1;) {
    steps.train[i - 1] = steps.train[i] * box.dims[i].train_extent;
    steps.infer[i - 1] = steps.infer[i] * box.dims[i].infer_extent;
  }
  return steps;
}

std::uint64_t length_of(const RemapDimension& dim) { return dim.train.end - dim.train.start; }

// A box as runs that are contiguous on both sides: one for each step of the outer dimensions.
struct Runs {
  std::size_t outer = 0;     // Dimensions that are walked step by step.
  std::uint64_t length = 1;  // Elements of one run.
  std::uint64_t count = 1;
};

Runs runs_of(const RemapBox& box) {
  Runs runs;
  runs.outer = box.dims.size();
  for (bool is_whole = true; is_whole && runs.outer > 0;) {
    const RemapDimension& dim = box.dims[--runs.outer];
    runs.length *= length_of(dim);
    is_whole = length_of(dim) == dim.train_extent && length_of(dim) == dim.infer_extent;
  }
  for (std::size_t i = 0; i < runs.outer; ++i) runs.count *= length_of(box.dims[i]);
  return runs;
}

void add(Remapped& out, std::uint64_t source, std::uint64_t infer_index) {
  out.sources.push_back(source);
  out.indices.push_back(static_cast<std::int32_t>(infer_index));
}

template <class Index>
class RangeSearch {
 public:
  explicit RangeSearch(std::span<const Index> indices) : indices_(indices) {}

  // Takes what lies in `length` elements from `train_start` on. Starts of later calls must not be smaller.
  void take(std::uint64_t train_start, std::uint64_t infer_start, std::uint64_t length, Remapped& out) {
    const auto begin = indices_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto first = std::lower_bound(begin, indices_.end(), train_start, less);
    const auto last = std::lower_bound(first, indices_.end(), train_start + length, less);
    next_ = static_cast<std::size_t>(last - indices_.begin());
    for (auto place = first; place != last; ++place) {
      const std::uint64_t offset = static_cast<std::uint64_t>(*place) - train_start;
      // Always so in ascending input; input that only claims to be ascending must not lead outside either.
      if (offset < length) add(out, static_cast<std::uint64_t>(place - indices_.begin()), infer_start + offset);
    }
  }

 private:
  static bool less(Index index, std::uint64_t bound) { return static_cast<std::uint64_t>(index) < bound; }

  std::span<const Index> indices_;
  std::size_t next_ = 0;
};

template <class Index>
void remap_by_ranges(const RemapBox& box, const Runs& runs, std::span<const Index> indices, Remapped& out) {
  const Steps steps = steps_of(box);
  std::uint64_t train_base = 0;
  std::uint64_t infer_base = 0;
  for (std::size_t i = 0; i < box.dims.size(); ++i) {
    train_base += box.dims[i].train.start * steps.train[i];
    infer_base += box.dims[i].infer.start * steps.infer[i];
  }
  RangeSearch<Index> search(indices);
  std::vector<std::uint64_t> at(runs.outer, 0);
  for (std::uint64_t run = 0; run < runs.count; ++run) {
    std::uint64_t train_start = train_base;
    std::uint64_t infer_start = infer_base;
    for (std::size_t i = 0; i < runs.outer; ++i) {
      train_start += at[i] * steps.train[i];
      infer_start += at[i] * steps.infer[i];
    }
    search.take(train_start, infer_start, runs.length, out);
    for (std::size_t i = runs.outer; i-- > 0;) {
      if (++at[i] < length_of(box.dims[i])) break;
      at[i] = 0;
    }
  }
}

template <class Index>
void remap_by_elements(const RemapBox& box, std::span<const Index> indices, Remapped& out) {
  const Steps steps = steps_of(box);
  for (std::size_t position = 0; position < indices.size(); ++position) {
    auto rest = static_cast<std::uint64_t>(indices[position]);
    std::uint64_t infer_index = 0;
    bool is_inside = box.dims.empty() ? rest == 0 : true;
    for (std::size_t i = 0; i < box.dims.size() && is_inside; ++i) {
      const RemapDimension& dim = box.dims[i];
      const std::uint64_t coordinate = rest / steps.train[i];
      rest %= steps.train[i];
      is_inside = dim.train.start <= coordinate && coordinate < dim.train.end;
      infer_index += (coordinate - dim.train.start + dim.infer.start) * steps.infer[i];
    }
    if (is_inside) add(out, position, infer_index);
  }
}

template <class Index>
Status check_indices(std::span<const Index> indices, bool is_ascending, std::uint64_t elements) {
  if (indices.empty()) return Unit{};
  Index least = indices.front();
  Index greatest = indices.back();
  if (!is_ascending) {
    const auto [low, high] = std::ranges::minmax_element(indices);
    least = *low;
    greatest = *high;
  }
  if (least >= 0 && greatest >= 0 && static_cast<std::uint64_t>(greatest) < elements) return Unit{};
  return Error{Errc::kInvalid,
               fmt::format("change indices {}..{} of a training shard of {} elements", least, greatest, elements)};
}

Status check_boxes(std::span<const RemapBox> boxes) {
  for (const RemapBox& box : boxes) {
    AREAL_TRY(check_box(box));
    if (!std::ranges::equal(box.dims, boxes.front().dims, {}, &RemapDimension::train_extent,
                            &RemapDimension::train_extent)) {
      return Error{Errc::kInvalid, "boxes of one group are of training shards of unequal extents"};
    }
  }
  return Unit{};
}

template <class Index>
Result<std::vector<Remapped>> remap_boxes(std::span<const RemapBox> boxes, std::span<const Index> indices,
                                          IndexOrder order) {
  AREAL_TRY(check_boxes(boxes));
  std::vector<Remapped> results(boxes.size());
  if (boxes.empty()) return results;
  const bool is_ascending =
      order == IndexOrder::kAscending || (order == IndexOrder::kScan && std::ranges::is_sorted(indices));
  AREAL_TRY(check_indices(indices, is_ascending, train_elements(boxes.front())));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const bool is_empty = std::ranges::any_of(boxes[i].dims, [](const auto& dim) { return length_of(dim) == 0; });
    const Runs runs = is_empty ? Runs{0, 0, 0} : runs_of(boxes[i]);
    if (is_ascending && runs.count <= kMostRuns) {
      results[i].path = RemapPath::kRanges;
      remap_by_ranges(boxes[i], runs, indices, results[i]);
    } else if (!is_empty) {
      remap_by_elements(boxes[i], indices, results[i]);
    }
  }
  return results;
}

}  // namespace

Status check_box(const RemapBox& box) {
  std::uint64_t train = 1;
  std::uint64_t infer = 1;
  for (const RemapDimension& dim : box.dims) {
    AREAL_TRY(check_slice(dim.train, dim.train_extent));
    AREAL_TRY(check_slice(dim.infer, dim.infer_extent));
    if (length_of(dim) != dim.infer.end - dim.infer.start) {
      return Error{Errc::kInvalid, fmt::format("{} elements of a training slice for {} of an infer slice",
                                               length_of(dim), dim.infer.end - dim.infer.start)};
    }
    const std::optional<std::uint64_t> more_train = product_below(train, dim.train_extent, kTrainLimit);
    if (!more_train) return Error{Errc::kInvalid, "training shard of 2**63 or more elements"};
    const std::optional<std::uint64_t> more_infer = product_below(infer, dim.infer_extent, kIndexLimit);
    if (!more_infer) {
      return Error{Errc::kInvalid, "infer shard of 2**31 or more elements: its indices would overflow int32"};
    }
    train = *more_train;
    infer = *more_infer;
  }
  return Unit{};
}

std::uint64_t train_elements(const RemapBox& box) {
  std::uint64_t elements = 1;
  for (const RemapDimension& dim : box.dims) elements *= dim.train_extent;
  return elements;
}

std::uint64_t infer_elements(const RemapBox& box) {
  std::uint64_t elements = 1;
  for (const RemapDimension& dim : box.dims) elements *= dim.infer_extent;
  return elements;
}

Result<std::vector<Remapped>> remap_group(std::span<const RemapBox> boxes, std::span<const std::int32_t> indices,
                                          IndexOrder order) {
  return remap_boxes(boxes, indices, order);
}

Result<std::vector<Remapped>> remap_group(std::span<const RemapBox> boxes, std::span<const std::int64_t> indices,
                                          IndexOrder order) {
  return remap_boxes(boxes, indices, order);
}

}  // namespace areal::delta
