// Grids: the closed form against ranks that report one by one, and the ceil rule of fully sharded layouts.
#include <gtest/gtest.h>

#include "engine/proto/layout_grids.h"
#include "engine/proto/overlap.h"
#include "tests/plan/random_layouts.h"

namespace areal::proto {
namespace {

bool equal(const MetaSet& a, const MetaSet& b) {
  const auto same_parameter = [](const ParameterMeta& x, const ParameterMeta& y) {
    return x.name == y.name && x.shape == y.shape && x.dtype == y.dtype && x.sharding == y.sharding && x.cut == y.cut &&
           x.num_shards == y.num_shards && x.first_replica == y.first_replica && x.replica_count == y.replica_count;
  };
  const auto same_replica = [](const ReplicaMeta& x, const ReplicaMeta& y) {
    return x.first_shard == y.first_shard && x.shard_count == y.shard_count;
  };
  const auto same_shard = [](const ShardMeta& x, const ShardMeta& y) {
    return x.global_rank == y.global_rank && x.shape == y.shape && x.offset == y.offset &&
           x.offset_rank == y.offset_rank;
  };
  return std::ranges::equal(a.parameters, b.parameters, same_parameter) &&
         std::ranges::equal(a.replicas, b.replicas, same_replica) && std::ranges::equal(a.shards, b.shards, same_shard);
}

// Every rank says which piece it holds, as workers report; MetaSet::add() puts the reports together.
MetaSet reported(const MetaSet& layout, const config::ModelSpec& model, std::uint32_t experts_per_owner,
                 bool is_training) {
  MetaSet metas;
  const std::uint32_t stages = layout.ranks.back().pp_rank + 1;
  for (const ParameterMeta& meta : layout.parameters) {
    const bool is_alias = model.find(meta.name) == nullptr;
    const config::Parameter* parameter = model.find(is_alias ? model.aliases[0].source : meta.name);
    const bool expert = config::is_expert(parameter->shard);
    std::uint32_t ranks = 1;  // Tensor ranks of the parameter's kind.
    for (const RankAxes& axes : layout.ranks) {
      ranks = std::max(ranks, (expert ? axes.ep_tp_rank : axes.tp_rank) + 1);
    }
    ParameterCut cut{meta.name,
                     meta.shape,
                     meta.dtype,
                     meta.sharding,
                     static_cast<std::uint8_t>(config::cut_dimension(parameter->shard)),
                     1};
    const bool whole =
        parameter->shard == config::ShardClass::kReplicated || parameter->shard == config::ShardClass::kRouter;
    if (!whole)
      cut.num_shards = parameter->max_shards > 0 ? std::min<std::uint32_t>(ranks, parameter->max_shards) : ranks;
    cut.local.extent[cut.cut] /= cut.num_shards;
    std::vector<LocalShard> holders;
    for (const RankAxes& axes : layout.ranks) {
      if (axes.pp_rank != (is_alias ? stages - 1 : stage_of(*parameter, model.dims, stages))) continue;
      if (expert && axes.ep_rank != parameter->expert / experts_per_owner) continue;
      const std::uint32_t at = expert ? axes.ep_tp_rank : axes.tp_rank;
      holders.push_back({axes.global_rank, at / (ranks / cut.num_shards)});
    }
    RC_ASSERT(metas.add(cut, holders).has_value());
  }
  RC_ASSERT(is_training || metas.replicas.size() >= metas.parameters.size());
  return metas;
}

RC_GTEST_PROP(ParameterGrid, LayoutsAreWhatRanksReport, ()) {
  const ModelLayouts layouts = random_model_layouts();
  const auto train = training_metas(layouts.model, layouts.train);
  const auto infer = inference_metas(layouts.model, layouts.infer);
  RC_PRE(train.has_value() && infer.has_value());
  const std::uint32_t experts = layouts.model.dims.experts;
  RC_ASSERT(equal(*train, reported(*train, layouts.model, experts / layouts.train.ep, true)));
  RC_ASSERT(equal(*infer, reported(*infer, layouts.model, experts / layouts.infer.ep, false)));
}

ParameterGrid random_grid() {
  ParameterGrid grid;
  grid.shape = Shape::of(*rc::gen::inRange(1U, 30U), *rc::gen::inRange(1U, 12U));
  grid.cut = *rc::gen::arbitrary<bool>() ? 1 : 0;
  grid.tensor_pieces = *rc::gen::inRange(1U, 5U);
  grid.row_pieces = *rc::gen::inRange(1U, 8U);
  grid.first_rank = *rc::gen::inRange(0U, 5U);
  grid.neighbours = *rc::gen::inRange(1U, 3U);
  grid.copies = *rc::gen::inRange(1U, 4U);
  grid.stride = grid.tensor_pieces * grid.neighbours + *rc::gen::inRange(0U, 3U);
  return grid;
}

RC_GTEST_PROP(ParameterGrid, RanksAndPlacesAreInverse, ()) {
  const ParameterGrid grid = random_grid();
  std::uint32_t holders = 0;
  const std::uint32_t end = grid.first_rank + grid.copies * grid.row_pieces * grid.stride + 3;
  for (std::uint32_t rank = 0; rank < end; ++rank) {
    const auto place = grid.place_of(rank);
    if (!place) continue;
    ++holders;
    RC_ASSERT(grid.rank_of(*place) == rank);
  }
  RC_ASSERT(holders == grid.pieces() * grid.replicas());
}

// Pieces that meet a box are found by division; each box is asked of every piece here.
RC_GTEST_PROP(ParameterGrid, MeetingPiecesAreThoseThatOverlap, ()) {
  const ParameterGrid grid = random_grid();
  ShardMeta box{0, grid.shape, {}, 2};
  for (std::size_t i = 0; i < 2; ++i) {
    box.offset[i] = *rc::gen::inRange(0U, grid.shape.extent[i]);
    box.shape.extent[i] = *rc::gen::inRange(0U, grid.shape.extent[i] - box.offset[i] + 1);
  }
  std::vector<std::uint32_t> met;
  grid.each_meeting(box, [&](std::uint32_t piece) { met.push_back(piece); });
  std::vector<std::uint32_t> overlapping;
  for (std::uint32_t piece = 0; piece < grid.pieces(); ++piece) {
    if (overlap_of(grid.shard({0, piece}), box).has_value()) overlapping.push_back(piece);
  }
  RC_ASSERT(met == overlapping);
}

// GAP-20: the offsets of the reference round down, those of the sharding library up.
TEST(FsdpGrid, LastShardsAreShorterOrEmpty) {
  ParameterGrid grid;
  grid.shape = Shape::of(5, 3);
  grid.row_pieces = 4;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rows;
  for (std::uint32_t piece = 0; piece < 4; ++piece) {
    const ShardMeta shard = grid.shard({0, piece});
    rows.emplace_back(shard.offset[0], shard.shape.extent[0]);
  }
  EXPECT_EQ(rows, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 2}, {2, 2}, {4, 1}, {5, 0}}));
}

// Extents that fill their integer: chunks times pieces go beyond it.
TEST(ParameterGrid, TheLongestExtentIsCutAndMetAsAnyOther) {
  ParameterGrid grid;
  grid.shape = Shape::of(0xFFFFFFFF);
  grid.tensor_pieces = 7;
  for (std::uint32_t piece = 0; piece < 7; ++piece) {
    const ShardMeta shard = grid.shard({0, piece});
    const MeshBox box = mesh_box(grid.shape, {{7, piece, 0}}).value();
    EXPECT_EQ(shard.shape, Shape::of(piece < 6 ? 613566757 : 613566753));
    EXPECT_EQ(box.shape, shard.shape);
    EXPECT_EQ(box.offset, shard.offset);
    std::vector<std::uint32_t> met;
    grid.each_meeting(shard, [&met](std::uint32_t found) { met.push_back(found); });
    EXPECT_EQ(met, std::vector{piece});
  }
}

// The same box as that of a device mesh whose outer axis is cut first.
RC_GTEST_PROP(FsdpGrid, ShardsAreTheBoxesOfADeviceMesh, ()) {
  const ParameterGrid grid = random_grid();
  for (std::uint32_t piece = 0; piece < grid.pieces(); ++piece) {
    const MeshBox box =
        mesh_box(grid.shape, {{grid.tensor_pieces, piece / grid.row_pieces, static_cast<std::int8_t>(grid.cut)},
                              {grid.row_pieces, piece % grid.row_pieces, 0}})
            .value();
    const ShardMeta shard = grid.shard({0, piece});
    RC_ASSERT(shard.offset == box.offset);
    RC_ASSERT(shard.shape == box.shape);
  }
}

}  // namespace
}  // namespace areal::proto
