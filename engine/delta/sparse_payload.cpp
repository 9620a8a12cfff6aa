// Gathering, joining, splitting and scattering of updates.
#include "engine/delta/sparse_payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/fields.h"
#include "engine/delta/bf16.h"
#include "engine/delta/change_mask.h"

namespace areal::delta {
namespace {

std::uint32_t cast_bits(std::uint32_t bits, DType from, DType to) {
  if (from == to) return bits;
  return from == DType::kF32 ? bf16_from_bits(bits) : bits_from_bf16(static_cast<std::uint16_t>(bits));
}

Status check_cast(DType from, DType to) {
  const bool is_float_pair = (from == DType::kF32 && to == DType::kBf16) || (from == DType::kBf16 && to == DType::kF32);
  const bool fits = size_of(from) == 2 || size_of(from) == 4;
  if (is_float_pair || (from == to && fits)) return Unit{};
  return Error{Errc::kUnsupported, fmt::format("no cast from {} to {}", to_text(from), to_text(to))};
}

template <class Index>
std::vector<Index> nonzero(std::span<const std::uint8_t> mask) {
  std::vector<Index> indices;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) indices.push_back(static_cast<Index>(i));
  }
  return indices;
}

// The operations of one source, by position in the caller's list, with their boxes.
struct Group {
  std::vector<std::size_t> ops;
  std::vector<RemapBox> boxes;
};

template <class Index>
Status fill_group(const SparseSource& source, const Group& group, std::span<const Index> indices, IndexOrder order,
                  std::vector<SparsePatch>& patches) {
  Result<std::vector<Remapped>> remapped = remap_group(group.boxes, indices, order);
  if (!remapped) return std::move(remapped).error();
  for (std::size_t i = 0; i < group.ops.size(); ++i) {
    SparsePatch& patch = patches[group.ops[i]];
    patch.indices = std::move((*remapped)[i].indices);
    patch.values.reserve(patch.indices.size());
    for (const std::uint64_t position : (*remapped)[i].sources) {
      const std::uint32_t bits = source.values.at(static_cast<std::uint64_t>(indices[position]));
      patch.values.push_back(cast_bits(bits, source.values.dtype, patch.dtype));
    }
  }
  return Unit{};
}

Status check_source(const SparseSource& source, const Group& group, std::span<const SparseOp> ops) {
  if (!source.values.half.empty() && size_of(source.values.dtype) != sizeof(std::uint16_t)) {
    return Error{Errc::kInvalid, fmt::format("16 bits an element for {}", to_text(source.values.dtype))};
  }
  for (const RemapBox& box : group.boxes) {
    AREAL_TRY(check_box(box));
    const std::uint64_t elements = train_elements(box);
    if (source.values.size() != elements) {
      return Error{Errc::kInvalid,
                   fmt::format("{} values for a training shard of {} elements", source.values.size(), elements)};
    }
    if (source.changes.dtype == DType::kBool && source.changes.mask.size() != elements) {
      return Error{Errc::kInvalid, fmt::format("a mask of {} for a training shard of {} elements",
                                               source.changes.mask.size(), elements)};
    }
  }
  for (const std::size_t op : group.ops) AREAL_TRY(check_cast(source.values.dtype, ops[op].wire));
  return Unit{};
}

Status build_group(const SparseSource& source, const Group& group, IndexOrder order,
                   std::vector<SparsePatch>& patches) {
  const ChangeSet& changes = source.changes;
  switch (changes.dtype) {
    case DType::kI32:
      return fill_group(source, group, changes.narrow, order, patches);
    case DType::kI64:
      return fill_group(source, group, changes.wide, order, patches);
    case DType::kBool:
      if (index_dtype(changes.mask.size()) == DType::kI32) {
        const std::vector<std::int32_t> indices = nonzero<std::int32_t>(changes.mask);
        return fill_group(source, group, std::span(indices), IndexOrder::kAscending, patches);
      } else {
        const std::vector<std::int64_t> indices = nonzero<std::int64_t>(changes.mask);
        return fill_group(source, group, std::span(indices), IndexOrder::kAscending, patches);
      }
    case DType::kBf16:
    case DType::kF32:
    case DType::kF16:
    case DType::kF64:
    case DType::kU8:
      break;
  }
  return Error{Errc::kInvalid, fmt::format("a change set is bool, int32, or int64, not {}", to_text(changes.dtype))};
}

// True if no index occurs twice.
bool are_unique(std::span<const std::int32_t> indices) {
  const auto not_ascending = [](std::int32_t a, std::int32_t b) { return a >= b; };
  if (std::ranges::adjacent_find(indices, not_ascending) == indices.end()) return true;
  std::vector<std::int32_t> ordered(indices.begin(), indices.end());
  std::ranges::stable_sort(ordered);
  return std::ranges::adjacent_find(ordered) == ordered.end();
}

template <class Bits>
Status scatter(const SparsePatchView& patch, DType dtype, std::span<Bits> target) {
  AREAL_TRY(check_patch(patch, dtype, target.size()));
  if (size_of(dtype) > sizeof(Bits)) {
    return Error{Errc::kUnsupported, fmt::format("{} does not fit {} bytes", to_text(dtype), sizeof(Bits))};
  }
  for (std::size_t i = 0; i < patch.indices.size(); ++i) {
    target[static_cast<std::size_t>(patch.indices[i])] = static_cast<Bits>(patch.values[i]);
  }
  return Unit{};
}

// Elements of a place, or nothing if it does not lie inside `buffer` elements.
std::optional<std::uint64_t> elements_within(const TargetPlace& place, std::uint64_t buffer) {
  if (place.extent.size() != place.stride.size()) return std::nullopt;
  if (std::ranges::find(place.extent, std::uint64_t{0}) != place.extent.end()) return 0;
  if (place.offset >= buffer) return std::nullopt;
  std::uint64_t left = buffer - 1 - place.offset;
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < place.extent.size(); ++i) {
    const std::uint64_t steps = place.extent[i] - 1;
    if (steps != 0 && place.stride[i] > left / steps) return std::nullopt;
    left -= steps * place.stride[i];
    if (place.extent[i] > kIndexLimit / elements) return std::nullopt;
    elements *= place.extent[i];
  }
  return elements;
}

std::uint64_t place_of(const TargetPlace& place, std::uint64_t index) {
  std::uint64_t at = place.offset;
  for (std::size_t i = place.extent.size(); i-- > 0;) {
    at += index % place.extent[i] * place.stride[i];
    index /= place.extent[i];
  }
  return at;
}

}  // namespace

Result<SparsePayloads> build_payloads(std::span<const SparseSource> sources, std::span<const SparseOp> ops,
                                      IndexOrder order) {
  SparsePayloads payloads;
  std::vector<Group> groups(sources.size());
  std::vector<std::size_t> by_first_use;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].source >= sources.size()) {
      return Error{Errc::kInvalid, fmt::format("operation {} has source {} of {}", i, ops[i].source, sources.size())};
    }
    payloads.patches.push_back({ops[i].wire, {}, {}});
    if (!sources[ops[i].source].present) continue;
    Group& group = groups[ops[i].source];
    if (group.ops.empty()) by_first_use.push_back(ops[i].source);
    group.ops.push_back(i);
    group.boxes.push_back(ops[i].box);
  }
  for (const std::size_t source : by_first_use) {
    AREAL_TRY(check_source(sources[source], groups[source], ops));
    AREAL_TRY(build_group(sources[source], groups[source], order, payloads.patches));
    payloads.group_sizes.push_back(groups[source].ops.size());
  }
  return payloads;
}

Result<std::int32_t> wire_count(std::uint64_t updates) {
  if (updates < kIndexLimit) return static_cast<std::int32_t>(updates);
  return Error{Errc::kInvalid, fmt::format("{} updates in one operation, 2**31 or more do not fit a count", updates)};
}

Result<std::vector<std::int32_t>> round_counts(std::span<const SparsePatch> patches) {
  std::vector<std::int32_t> counts;
  counts.reserve(patches.size());
  for (const SparsePatch& patch : patches) {
    Result<std::int32_t> count = wire_count(patch.indices.size());
    if (!count) return std::move(count).error();
    counts.push_back(*count);
  }
  return counts;
}

SparsePatch join_patches(DType dtype, std::span<const SparsePatch> patches) {
  SparsePatch joined{dtype, {}, {}};
  for (const SparsePatch& patch : patches) {
    AREAL_CHECK(patch.dtype == dtype);
    joined.indices.insert(joined.indices.end(), patch.indices.begin(), patch.indices.end());
    joined.values.insert(joined.values.end(), patch.values.begin(), patch.values.end());
  }
  return joined;
}

Result<std::vector<SparsePatchView>> split_by_counts(std::span<const std::int32_t> counts,
                                                     const SparsePatchView& joined) {
  std::uint64_t total = 0;
  for (const std::int32_t count : counts) {
    if (count < 0) return Error{Errc::kCorrupt, fmt::format("a count of {}", count)};
    total += static_cast<std::uint64_t>(count);
  }
  if (total != joined.indices.size() || total != joined.values.size()) {
    return Error{Errc::kCorrupt, fmt::format("counts of {} for {} indices and {} values", total, joined.indices.size(),
                                             joined.values.size())};
  }
  std::vector<SparsePatchView> views;
  views.reserve(counts.size());
  std::size_t start = 0;
  for (const std::int32_t count : counts) {
    const auto size = static_cast<std::size_t>(count);
    views.push_back({joined.dtype, joined.indices.subspan(start, size), joined.values.subspan(start, size)});
    start += size;
  }
  return views;
}

Result<SparsePatch> merge_patches(const SparsePatchView& first, const SparsePatchView& second) {
  std::vector<std::pair<std::int32_t, std::uint32_t>> updates;
  for (const SparsePatchView& patch : {first, second}) {
    AREAL_TRY(check_patch(patch, first.dtype, kIndexLimit));
    for (std::size_t i = 0; i < patch.indices.size(); ++i) updates.emplace_back(patch.indices[i], patch.values[i]);
  }
  std::ranges::stable_sort(updates, {}, &std::pair<std::int32_t, std::uint32_t>::first);
  SparsePatch merged{first.dtype, {}, {}};
  for (const auto& [index, value] : updates) {
    merged.indices.push_back(index);
    merged.values.push_back(value);
  }
  AREAL_TRY(check_patch(view_of(merged), first.dtype, kIndexLimit));
  return merged;
}

bool fits_dtype(DType dtype, std::span<const std::uint32_t> words) {
  const std::uint32_t bytes = size_of(dtype);
  if (bytes > sizeof(std::uint32_t)) return false;
  const std::uint64_t end = std::uint64_t{1} << (8 * bytes);
  return std::ranges::all_of(words, [end](std::uint32_t bits) { return bits < end; });
}

Status check_patch(const SparsePatchView& patch, DType dtype, std::uint64_t elements) {
  if (patch.dtype != dtype) {
    return Error{Errc::kInvalid, fmt::format("a patch of {} for a target of {}", to_text(patch.dtype), to_text(dtype))};
  }
  if (patch.indices.size() != patch.values.size()) {
    return Error{Errc::kInvalid, fmt::format("{} indices with {} values", patch.indices.size(), patch.values.size())};
  }
  for (const std::int32_t index : patch.indices) {
    if (index < 0 || static_cast<std::uint64_t>(index) >= elements) {
      return Error{Errc::kInvalid, fmt::format("index {} of a target of {} elements", index, elements)};
    }
  }
  if (!fits_dtype(dtype, patch.values)) {
    return Error{Errc::kInvalid, fmt::format("a value that is no {} in a 32-bit word", to_text(dtype))};
  }
  if (!are_unique(patch.indices)) return Error{Errc::kInvalid, "an index occurs twice in one patch"};
  return Unit{};
}

Status apply_patch(const SparsePatchView& patch, DType dtype, std::span<std::uint16_t> target) {
  return scatter(patch, dtype, target);
}

Status apply_patch(const SparsePatchView& patch, DType dtype, std::span<std::uint32_t> target) {
  return scatter(patch, dtype, target);
}

Status apply_patch(const SparsePatchView& patch, DType dtype, std::span<std::uint32_t> buffer,
                   const TargetPlace& place) {
  const std::optional<std::uint64_t> elements = elements_within(place, buffer.size());
  if (!elements) return Error{Errc::kInvalid, fmt::format("a target that leaves its buffer of {}", buffer.size())};
  AREAL_TRY(check_patch(patch, dtype, *elements));
  for (std::size_t i = 0; i < patch.indices.size(); ++i) {
    buffer[place_of(place, static_cast<std::uint64_t>(patch.indices[i]))] = patch.values[i];
  }
  return Unit{};
}

}  // namespace areal::delta
