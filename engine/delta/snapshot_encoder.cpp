// Compare, encode, keep a copy.
#include "engine/delta/snapshot_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace areal::delta {
namespace {

Result<std::vector<NamedTensor>> copy_by_name(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> copy(tensors.begin(), tensors.end());
  std::ranges::stable_sort(copy, {}, &NamedTensor::name);
  const auto twice = std::ranges::adjacent_find(copy, std::ranges::equal_to{}, &NamedTensor::name);
  if (twice != copy.end()) return Error{Errc::kInvalid, fmt::format("tensor '{}' occurs twice", twice->name)};
  for (const NamedTensor& tensor : copy) AREAL_TRY(check_parameter_name(tensor.name));
  return copy;
}

}  // namespace

std::vector<std::int64_t> changed_bits(std::span<const std::uint32_t> before, std::span<const std::uint32_t> after) {
  AREAL_CHECK(before.size() == after.size());
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) indices.push_back(static_cast<std::int64_t>(i));
  }
  return indices;
}

Status SnapshotEncoder::seed(std::span<const NamedTensor> tensors, std::int64_t version) {
  Result<std::vector<NamedTensor>> copy = copy_by_name(tensors);
  if (!copy) return std::move(copy).error();
  snapshot_ = std::move(*copy);
  base_version_ = version;
  return Unit{};
}

Result<EncodedDelta> SnapshotEncoder::encode(std::span<const NamedTensor> tensors, std::int64_t version) {
  if (!base_version_) return Error{Errc::kInvalid, "a delta without base: the encoder was not seeded"};
  Result<std::vector<NamedTensor>> copy = copy_by_name(tensors);
  if (!copy) return std::move(copy).error();
  std::vector<std::vector<std::int64_t>> changes(tensors.size());
  std::vector<EncodedParameter> parameters;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& tensor = tensors[i];
    EncodedParameter parameter{tensor.name, {tensor.dtype, {}, tensor.bits}, std::nullopt};
    const auto held = std::ranges::lower_bound(snapshot_, tensor.name, {}, &NamedTensor::name);
    if (held != snapshot_.end() && held->name == tensor.name && held->dtype == tensor.dtype &&
        held->bits.size() == tensor.bits.size()) {
      changes[i] = changed_bits(held->bits, tensor.bits);
      parameter.changes = change_indices(changes[i]);
    }
    parameters.push_back(parameter);
  }
  Result<EncodedDelta> encoded = encode_delta(version, *base_version_, parameters);
  if (!encoded) return encoded;
  snapshot_ = std::move(*copy);
  base_version_ = version;
  return encoded;
}

std::uint64_t SnapshotEncoder::snapshot_bytes() const {
  std::uint64_t bytes = 0;
  for (const NamedTensor& tensor : snapshot_) bytes += tensor.bits.size() * size_of(tensor.dtype);
  return bytes;
}

}  // namespace areal::delta
