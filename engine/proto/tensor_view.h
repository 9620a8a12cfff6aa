// A named, strided view of a source tensor: how fused tensors are taken apart without touching a byte.
//
// Views may be non-contiguous: a receiver stages them in a contiguous buffer and copies back.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "engine/proto/shard_meta.h"

namespace areal::proto {

// Walks extent[0] x extent[1] x extent[2] x extent[3] elements, last fastest; element (i, j, k, l) of the walk is
// element offset + i * stride[0] + ... of the source. `shape` is how the result is seen; it has as many elements.
struct TensorView {
  std::string name;
  Shape shape;
  std::uint8_t source = 0;  // Which of several source tensors.
  std::uint64_t offset = 0;
  std::array<std::uint32_t, 4> extent{1, 1, 1, 1};
  std::array<std::uint64_t, 4> stride{0, 0, 0, 0};

  [[nodiscard]] std::uint64_t elements() const { return std::uint64_t{extent[0]} * extent[1] * extent[2] * extent[3]; }
  // Calls visit(index in the source) for every element, in the order of the result.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::uint64_t i = 0; i < extent[0]; ++i) {
      for (std::uint64_t j = 0; j < extent[1]; ++j) {
        for (std::uint64_t k = 0; k < extent[2]; ++k) {
          const std::uint64_t row = offset + i * stride[0] + j * stride[1] + k * stride[2];
          for (std::uint64_t l = 0; l < extent[3]; ++l) visit(row + l * stride[3]);
        }
      }
    }
  }
};

// Elements of one step along dimension 0.
constexpr std::uint64_t row_size(const Shape& shape) {
  return shape.extent[0] == 0 ? 0 : shape.elements() / shape.extent[0];
}

// `rows` whole rows from `first_row` on.
TensorView row_view(std::string name, const Shape& source, std::uint32_t first_row, std::uint32_t rows);

}  // namespace areal::proto
