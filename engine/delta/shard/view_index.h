// Places in a strided view: from the view to its source and back, one element at a time.
//
// A view's elements are numbered as each() visits them. Strides of a view do not overlap: each is at least as long as
// all that lies inside of it. Pure functions.
#pragma once
#include <cstdint>
#include <optional>

#include "engine/proto/tensor_view.h"

namespace areal::delta {

// REQUIRES: index < view.elements().
constexpr std::uint64_t source_index(const proto::TensorView& view, std::uint64_t index) {
  std::uint64_t source = view.offset;
  for (std::size_t i = view.extent.size(); i-- > 0;) {
    source += index % view.extent[i] * view.stride[i];
    index /= view.extent[i];
  }
  return source;
}

// Nothing if the element of the source is not in the view.
constexpr std::optional<std::uint64_t> view_index(const proto::TensorView& view, std::uint64_t source) {
  if (source < view.offset) return std::nullopt;
  std::uint64_t rest = source - view.offset;
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < view.extent.size(); ++i) {
    const std::uint64_t at = view.stride[i] == 0 ? 0 : rest / view.stride[i];
    if (at >= view.extent[i]) return std::nullopt;
    rest -= at * view.stride[i];
    index = index * view.extent[i] + at;
  }
  if (rest != 0) return std::nullopt;
  return index;
}

}  // namespace areal::delta
