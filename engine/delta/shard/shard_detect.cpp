#include "engine/delta/shard/shard_detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/fields.h"
#include "engine/delta/proven_bound.h"
#include "engine/delta/shard/view_index.h"

namespace areal::delta {
namespace {

constexpr std::uint64_t kStatusBytes = 24;  // Three int64 a core tensor; spec/transfer.md 1.6.

// What the reference's ranks compute together: the owner's correction, summed with zeros, added to what is visible.
bool changed_by_margin(const OwnedState& state, std::size_t i, const ShardRule& rule) {
  const float previous = invert_adamw(rule.inversion, state.weights[i], state.exp_avg[i], state.exp_avg_sq[i]);
  if (state.storage == DType::kF32) {
    const auto visible = std::bit_cast<float>(state.visible[i]);
    return f32_changed(visible + (previous - visible), state.visible[i]);
  }
  const auto visible = static_cast<std::uint16_t>(state.visible[i]);
  return bf16_changed(reconstruct(visible, correction_of(previous, visible)), visible, rule.margin_rel);
}

bool changed_by_proof(const OwnedState& state, std::size_t i, const ShardRule& rule) {
  const ProvenInterval interval = proven_interval(rule.proven, state.weights[i], state.exp_avg[i], state.exp_avg_sq[i]);
  if (state.storage == DType::kF32) {
    // Only an interval of one weight proves that it has its bits still.
    const bool is_known = interval.radius == 0.0F && interval.back == 0.0F;
    return !is_known || std::bit_cast<std::uint32_t>(state.weights[i]) != state.visible[i];
  }
  const std::uint16_t current = to_bf16(state.weights[i]);
  return current != state.visible[i] || must_mark(interval, current);
}

std::uint32_t cast_bits(std::uint32_t bits, DType from, DType to) {
  if (from == to) return bits;
  return from == DType::kF32 ? bf16_from_bits(bits) : bits_from_bf16(static_cast<std::uint16_t>(bits));
}

bool is_castable(DType from, DType to) {
  const auto is_known = [](DType dtype) { return dtype == DType::kBf16 || dtype == DType::kF32; };
  return from == to || (is_known(from) && is_known(to));
}

// Where a part's element lies in the shard of a slice; nothing if it is not in the slice's box.
std::optional<std::int32_t> place_in(const OwnerSlice& slice, const proto::Offsets& at) {
  std::uint64_t flat = 0;
  for (std::size_t i = 0; i < slice.shard.rank; ++i) {
    if (at[i] < slice.begin[i] || at[i] >= slice.end[i]) return std::nullopt;
    flat = flat * slice.shard.extent[i] + (at[i] - slice.shard_offset[i]);
  }
  return static_cast<std::int32_t>(flat);
}

// Coordinates in the whole checkpoint tensor of element `index` of a slice at `offset`.
proto::Offsets coordinates(const proto::Shape& slice, const proto::Offsets& offset, std::uint64_t index) {
  proto::Offsets at{};
  for (std::size_t i = slice.rank; i-- > 0;) {
    at[i] = offset[i] + static_cast<std::uint32_t>(index % slice.extent[i]);
    index /= slice.extent[i];
  }
  return at;
}

Status check_slices(const CoreLayout& layout, std::span<const OwnerSlice> slices, const OwnedState& state) {
  for (const OwnerSlice& slice : slices) {
    const OwnerSlice& first = slices.front();
    if (slice.core != first.core || slice.piece != first.piece || slice.owner != first.owner) {
      return Error{Errc::kInvalid, "slices of more than one owned range"};
    }
    if (slice.core >= layout.tensors.size() || slice.part >= layout.tensors[slice.core].parts.size()) {
      return Error{Errc::kInvalid, fmt::format("a slice of part {} of core tensor {}", slice.part, slice.core)};
    }
    const CoreTensor& tensor = layout.tensors[slice.core];
    if (slice.piece >= tensor.ranks.tensor_pieces || slice.owner >= tensor.owners()) {
      return Error{Errc::kInvalid,
                   fmt::format("{} has no owner {} of piece {}", tensor.name, slice.owner, slice.piece)};
    }
    if (!is_castable(state.storage, slice.wire)) {
      return Error{Errc::kUnsupported,
                   fmt::format("no cast from {} to {}", to_text(state.storage), to_text(slice.wire))};
    }
  }
  return Unit{};
}

Status check_positions(std::span<const std::uint64_t> changed, std::uint64_t elements) {
  const auto does_not_ascend = [](std::uint64_t a, std::uint64_t b) { return a >= b; };
  const auto fall = std::ranges::adjacent_find(changed, does_not_ascend);
  if (fall != changed.end()) {
    return Error{Errc::kInvalid, fmt::format("position {} before {}: they must ascend", *fall, *std::next(fall))};
  }
  if (!changed.empty() && changed.back() >= elements) {
    return Error{Errc::kInvalid, fmt::format("position {} of an owned range of {}", changed.back(), elements)};
  }
  return Unit{};
}

}  // namespace

std::vector<std::uint64_t> changed_elements(const OwnedState& state, const ShardRule& rule) {
  if (state.storage != DType::kBf16 && state.storage != DType::kF32) return all_elements(state);
  AREAL_CHECK(state.exp_avg.size() == state.weights.size());
  AREAL_CHECK(state.exp_avg_sq.size() == state.weights.size());
  AREAL_CHECK(state.visible.size() == state.weights.size());
  std::vector<std::uint64_t> changed;
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    if (rule.is_proven ? changed_by_proof(state, i, rule) : changed_by_margin(state, i, rule)) changed.push_back(i);
  }
  return changed;
}

std::vector<std::uint64_t> all_elements(const OwnedState& state) {
  std::vector<std::uint64_t> all(state.visible.size());
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

Result<std::vector<SparsePatch>> route_changes(const CoreLayout& layout, std::span<const OwnerSlice> slices,
                                               const OwnedState& state, std::span<const std::uint64_t> changed) {
  std::vector<SparsePatch> patches;
  for (const OwnerSlice& slice : slices) patches.push_back({slice.wire, {}, {}});
  if (slices.empty()) return patches;
  AREAL_TRY(check_slices(layout, slices, state));
  const CoreTensor& tensor = layout.tensors[slices.front().core];
  const FlatRange owned = tensor.owned(slices.front().owner);
  AREAL_TRY(check_positions(changed, owned.size()));
  if (state.visible.size() != owned.size()) {
    return Error{Errc::kInvalid,
                 fmt::format("state of {} elements for an owned range of {}", state.visible.size(), owned.size())};
  }
  for (std::uint32_t part_index = 0; part_index < tensor.parts.size(); ++part_index) {
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].part == part_index) mine.push_back(i);
    }
    const CorePart& part = tensor.parts[part_index];
    const proto::Offsets offset = tensor.slice_offset(part, slices.front().piece);
    for (const std::uint64_t position : changed) {
      if (mine.empty()) break;
      const std::optional<std::uint64_t> index = view_index(part.view, owned.begin + position);
      if (!index) continue;
      const proto::Offsets at = coordinates(part.view.shape, offset, *index);
      for (const std::size_t i : mine) {
        const std::optional<std::int32_t> place = place_in(slices[i], at);
        if (!place) continue;
        patches[i].indices.push_back(*place);
        patches[i].values.push_back(cast_bits(state.visible[position], state.storage, slices[i].wire));
      }
    }
  }
  return patches;
}

DeltaTraffic shard_traffic(std::span<const SparsePatch> patches) {
  DeltaTraffic traffic;
  for (const SparsePatch& patch : patches) {
    traffic.updates += patch.indices.size();
    traffic.data_bytes += patch_bytes(patch.indices.size(), patch.dtype);
  }
  traffic.count_bytes = 4 * patches.size();
  traffic.status_bytes = kStatusBytes;
  return traffic;
}

DeltaTraffic reduction_traffic(const CoreTensor& tensor, std::span<const SparsePatch> patches) {
  DeltaTraffic traffic = shard_traffic(patches);
  traffic.reduced_bytes = 4 * tensor.piece.elements();
  return traffic;
}

}  // namespace areal::delta
