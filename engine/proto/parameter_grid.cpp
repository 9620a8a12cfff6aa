#include "engine/proto/parameter_grid.h"

#include "engine/base/check.h"

namespace areal::proto {
namespace {

// Piece `index` of `pieces` along dimension `dim` of what the shard is so far.
void cut_down(ShardMeta& shard, std::size_t dim, std::uint32_t index, std::uint32_t pieces) {
  const std::uint32_t extent = shard.shape.extent[dim];
  const std::uint32_t chunk = ceil_chunk(extent, pieces);
  const auto start = static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, std::uint64_t{chunk} * index));
  shard.offset[dim] += start;
  shard.shape.extent[dim] = std::min(chunk, extent - start);
}

}  // namespace

std::uint32_t ParameterGrid::rank_of(GridPlace place) const {
  AREAL_CHECK(place.replica < replicas());
  AREAL_CHECK(place.piece < pieces());
  const std::uint32_t outer = place.replica / neighbours * row_pieces + place.piece % row_pieces;
  return first_rank + outer * stride + place.piece / row_pieces * neighbours + place.replica % neighbours;
}

std::optional<GridPlace> ParameterGrid::place_of(std::uint32_t global_rank) const {
  if (global_rank < first_rank) return std::nullopt;
  const std::uint32_t outer = (global_rank - first_rank) / stride;
  const std::uint32_t inner = (global_rank - first_rank) % stride;
  if (outer >= copies * row_pieces || inner >= tensor_pieces * neighbours) return std::nullopt;
  return GridPlace{outer / row_pieces * neighbours + inner % neighbours,
                   inner / neighbours * row_pieces + outer % row_pieces};
}

ShardMeta ParameterGrid::shard(GridPlace place) const {
  ShardMeta shard{rank_of(place), shape, {}, shape.rank};
  cut_down(shard, cut, place.piece / row_pieces, tensor_pieces);
  cut_down(shard, 0, place.piece % row_pieces, row_pieces);
  return shard;
}

MetaSet metas_of(const GridSet& grids) {
  MetaSet metas;
  metas.names = grids.names;
  for (const ParameterGrid& grid : grids.parameters) {
    metas.parameters.push_back({grid.name, grid.shape, grid.dtype, grid.sharding, grid.cut, grid.pieces(),
                                static_cast<std::uint32_t>(metas.replicas.size()), grid.replicas()});
    for (std::uint32_t replica = 0; replica < grid.replicas(); ++replica) {
      metas.replicas.push_back({static_cast<std::uint32_t>(metas.shards.size()), grid.pieces()});
      for (std::uint32_t piece = 0; piece < grid.pieces(); ++piece)
        metas.shards.push_back(grid.shard({replica, piece}));
    }
  }
  return metas;
}

}  // namespace areal::proto
