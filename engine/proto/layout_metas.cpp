// Lists of whole training and inference layouts, from their grids.
#include <algorithm>
#include <utility>

#include "engine/proto/layout_grids.h"
#include "engine/proto/sharding.h"

namespace areal::proto {
namespace {

using config::ModelDims;
using config::ModelSpec;
using config::ParallelStrategy;
using config::Parameter;

RankAxes training_axes(std::uint32_t rank, const ParallelStrategy& strategy) {
  RankAxes axes;
  axes.global_rank = rank;
  axes.tp_rank = rank % strategy.tp;
  axes.attn_tp_rank = axes.tp_rank;
  axes.cp_rank = rank / strategy.tp % strategy.cp;
  axes.dp_rank = rank / (strategy.tp * strategy.cp) % strategy.dp;
  axes.pp_rank = rank / (strategy.tp * strategy.cp * strategy.dp);
  axes.ep_tp_rank = rank % strategy.etp;
  axes.ep_rank = rank / strategy.etp % strategy.ep;
  return axes;
}

}  // namespace

std::uint32_t stage_of(const Parameter& parameter, const ModelDims& dims, std::uint32_t pp_size) {
  if (parameter.layer == config::kNoLayer) return parameter.shard == config::ShardClass::kEmbedding ? 0 : pp_size - 1;
  const std::uint32_t even = dims.layers / pp_size;
  const std::uint32_t longer = dims.layers % pp_size;  // So many first stages have one layer more.
  const std::uint32_t boundary = longer * (even + 1);
  if (parameter.layer < boundary) return parameter.layer / (even + 1);
  return longer + (parameter.layer - boundary) / std::max(1U, even);
}

Result<MetaSet> training_metas(const ModelSpec& model, const ParallelStrategy& strategy) {
  Result<GridSet> grids = training_grids(model, strategy);
  if (!grids) return std::move(grids).error();
  MetaSet metas = metas_of(*grids);
  for (std::uint32_t rank = 0; rank < grids->world; ++rank) metas.ranks.push_back(training_axes(rank, strategy));
  return metas;
}

Result<MetaSet> inference_metas(const ModelSpec& model, const ParallelStrategy& strategy) {
  Result<GridSet> grids = inference_grids(model, strategy);
  if (!grids) return std::move(grids).error();
  MetaSet metas = metas_of(*grids);
  const InstanceSizes sizes{.tp = strategy.tp, .attn_tp = strategy.tp, .ep = strategy.ep};
  for (std::uint32_t rank = 0; rank < grids->world; ++rank) {
    RankAxes axes = expert_axes(rank % strategy.tp, sizes);
    axes.global_rank = rank;
    axes.pp_rank = rank / strategy.tp;
    metas.ranks.push_back(axes);
  }
  return metas;
}

}  // namespace areal::proto
