// Checks everything, then writes everything.
#include "engine/delta/base_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/fields.h"

namespace areal::delta {

BaseTensors::BaseTensors(std::vector<NamedTensor> tensors, std::int64_t version)
    : tensors_(std::move(tensors)), version_(version) {
  std::ranges::stable_sort(tensors_, {}, &NamedTensor::name);
  const bool is_twice =
      std::ranges::adjacent_find(tensors_, std::ranges::equal_to{}, &NamedTensor::name) != tensors_.end();
  AREAL_CHECK(!is_twice);
}

const NamedTensor* BaseTensors::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(tensors_, name, {}, &NamedTensor::name);
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

Status BaseTensors::check(const DecodedDelta& delta) const {
  if (delta.header.base_version != version_) {
    return Error{Errc::kInvalid,
                 fmt::format("delta for base {}, this base is {}", delta.header.base_version, version_)};
  }
  for (const SparseEntry& entry : delta.sparse) {
    const NamedTensor* held = find(entry.name);
    if (held == nullptr) return Error{Errc::kInvalid, fmt::format("sparse '{}' is absent from base", entry.name)};
    const Status fits = check_patch(view_of(entry.patch), held->dtype, held->bits.size());
    if (!fits) return Error{fits.error().code, fmt::format("'{}': {}", entry.name, fits.error().detail)};
  }
  for (const NamedTensor& entry : delta.dense) {
    const NamedTensor* held = find(entry.name);
    if (held == nullptr || (held->dtype == entry.dtype && held->bits.size() == entry.bits.size())) continue;
    return Error{Errc::kInvalid, fmt::format("dense '{}' has {} {}, base has {} {}", entry.name, entry.bits.size(),
                                             to_text(entry.dtype), held->bits.size(), to_text(held->dtype))};
  }
  return Unit{};
}

void BaseTensors::adopt(const NamedTensor& tensor) {
  const auto place = std::ranges::lower_bound(tensors_, tensor.name, {}, &NamedTensor::name);
  if (place != tensors_.end() && place->name == tensor.name) {
    place->bits = tensor.bits;
  } else {
    tensors_.insert(place, tensor);
  }
}

Result<Reconstructed> BaseTensors::apply(const DecodedDelta& delta) {
  AREAL_TRY(check(delta));
  for (const SparseEntry& entry : delta.sparse) {
    const auto place = std::ranges::lower_bound(tensors_, entry.name, {}, &NamedTensor::name);
    AREAL_TRY(apply_patch(view_of(entry.patch), place->dtype, std::span(place->bits)));
  }
  for (const NamedTensor& entry : delta.dense) adopt(entry);
  version_ = delta.header.payload_version;
  return Reconstructed{delta.sparse.size(), delta.dense.size(),
                       tensors_.size() - delta.sparse.size() - delta.dense.size()};
}

}  // namespace areal::delta
