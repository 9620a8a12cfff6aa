// Who holds which piece of a parameter, in closed form: what a rank needs of a layout too large to be listed.
//
// A parameter is cut along one dimension over tensor ranks, and what is left of it along its rows over sharding ranks
// (FSDP). Both by the ceil rule: n elements over w ranks are pieces of ceil(n / w), the last ones shorter or empty.
// Piece = tensor piece * row pieces + row piece. Ranks stand in a grid:
//
//   rank = first_rank + (copy * row_pieces + row piece) * stride + tensor piece * neighbours + neighbour
//
// Neighbours are tensor ranks that hold equal pieces, because there are fewer pieces than ranks. Replica = copy *
// neighbours + neighbour: all pieces of one copy and one neighbour cover the parameter once. Values.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/proto/shard_meta.h"

namespace areal::proto {

struct GridPlace {
  std::uint32_t replica = 0;
  std::uint32_t piece = 0;
  constexpr bool operator==(const GridPlace&) const = default;
};

struct ParameterGrid {
  std::uint32_t name = 0;  // Index into GridSet::names.
  Shape shape;             // Global.
  DType dtype = DType::kBf16;
  Sharding sharding = Sharding::kNone;
  std::uint8_t cut = 0;  // The dimension that tensor ranks cut.
  std::uint32_t tensor_pieces = 1;
  std::uint32_t row_pieces = 1;
  std::uint32_t first_rank = 0;
  std::uint32_t neighbours = 1;
  std::uint32_t copies = 1;
  std::uint32_t stride = 1;  // At least tensor_pieces * neighbours.

  [[nodiscard]] constexpr std::uint32_t pieces() const { return tensor_pieces * row_pieces; }
  [[nodiscard]] constexpr std::uint32_t replicas() const { return neighbours * copies; }
  // REQUIRES: replica < replicas() and piece < pieces().
  [[nodiscard]] std::uint32_t rank_of(GridPlace place) const;
  // Nothing if the rank holds nothing. A rank holds at most one piece; that may be empty.
  [[nodiscard]] std::optional<GridPlace> place_of(std::uint32_t global_rank) const;
  // REQUIRES: as rank_of.
  [[nodiscard]] ShardMeta shard(GridPlace place) const;

  // Calls visit(piece), ascending, for every piece that has an element in the box.
  // REQUIRES: the box lies inside the parameter and has as many dimensions.
  template <class Visit>
  void each_meeting(const ShardMeta& box, Visit&& visit) const;
};

// All parameters of one side; of the inference side those of one engine.
struct GridSet {
  std::shared_ptr<const NameTable> names;
  std::vector<ParameterGrid> parameters;
  std::uint32_t world = 0;
};

// The same as lists. `ranks` of the result is left empty.
MetaSet metas_of(const GridSet& grids);

// ceil(extent / pieces).
constexpr std::uint32_t ceil_chunk(std::uint32_t extent, std::uint32_t pieces) {
  return static_cast<std::uint32_t>((std::uint64_t{extent} + pieces - 1) / pieces);
}

template <class Visit>
void ParameterGrid::each_meeting(const ShardMeta& box, Visit&& visit) const {
  if (box.shape.elements() == 0) return;
  const std::uint32_t chunk = ceil_chunk(shape.extent[cut], tensor_pieces);
  const std::uint32_t last = (box.offset[cut] + box.shape.extent[cut] - 1) / chunk;
  const std::uint32_t box_end = box.offset[0] + box.shape.extent[0];
  for (std::uint32_t t = box.offset[cut] / chunk; t <= last; ++t) {
    const std::uint32_t begin = cut == 0 ? t * chunk : 0;
    const std::uint32_t end = cut == 0 ? begin + std::min(chunk, shape.extent[0] - begin) : shape.extent[0];
    const std::uint32_t from = std::max(begin, box.offset[0]);
    const std::uint32_t to = std::min(end, box_end);
    if (from >= to) continue;
    const std::uint32_t rows = ceil_chunk(end - begin, row_pieces);
    for (std::uint32_t row = (from - begin) / rows; row <= (to - 1 - begin) / rows; ++row) visit(t * row_pieces + row);
  }
}

}  // namespace areal::proto
