// How tensors of different sizes are cut into tiles of one size, so that one launch covers all of them.
//
// Tile numbers run through the tensors in order; a tile never spans two tensors, and an empty tensor has none. Pure
// functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::delta::cuda {

struct TilePlan {
  // Of each tensor, and behind the last one the number of tiles: tensor t has tiles first_tile[t] .. first_tile[t+1]-1.
  std::vector<std::uint32_t> first_tile;
  std::uint64_t elements = 0;

  [[nodiscard]] std::uint32_t tensors() const { return static_cast<std::uint32_t>(first_tile.size() - 1); }
  [[nodiscard]] std::uint32_t tiles() const { return first_tile.back(); }
};

// Refuses 2^31 tiles and more, and 2^31 tensors and more. REQUIRES: tile_elements > 0.
Result<TilePlan> plan_tiles(std::span<const std::uint64_t> tensor_elements, std::uint32_t tile_elements);

}  // namespace areal::delta::cuda
