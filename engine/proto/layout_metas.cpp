// Metas of whole training and inference layouts, from a model and its parallel sizes.
#include <fmt/format.h>

#include <algorithm>

#include "engine/proto/sharding.h"

namespace areal::proto {
namespace {

using config::ModelDims;
using config::ModelSpec;
using config::ParallelStrategy;
using config::Parameter;

// The expert-parallel owner of a parameter, 0 for what is no expert.
std::uint32_t owner_of(const Parameter& parameter, const ModelDims& dims, std::uint32_t ep) {
  if (parameter.expert == config::kNoExpert) return 0;
  return parameter.expert / std::max(1U, dims.experts / ep);
}

Status check_experts(const ModelDims& dims, std::uint32_t ep) {
  if (ep == 0 || (dims.experts > 0 && dims.experts % ep != 0)) {
    return Error{Errc::kInvalid, fmt::format("{} experts do not divide over ep {}", dims.experts, ep)};
  }
  return Unit{};
}

// The cut of one parameter into `num_shards` equal pieces.
Result<ParameterCut> make_cut(const ModelSpec& model, const Parameter& parameter, std::uint32_t num_shards) {
  ParameterCut cut;
  cut.name = parameter.name;
  cut.local = parameter.shape;
  cut.cut = static_cast<std::uint8_t>(config::cut_dimension(parameter.shard));
  cut.num_shards = num_shards;
  if (num_shards == 1) return cut;
  std::uint32_t& extent = cut.local.extent[cut.cut];
  if (cut.cut >= cut.local.rank || extent % num_shards != 0) {
    return Error{Errc::kInvalid, fmt::format("{}: dimension {} of {} does not divide by {} shards",
                                             model.name_of(parameter), cut.cut, extent, num_shards)};
  }
  extent /= num_shards;
  return cut;
}

// The piece that rank `rank` of `ranks` holds when there are only `num_shards` pieces: neighbours hold equal ones.
Result<std::uint32_t> piece_of(std::uint32_t rank, std::uint32_t ranks, std::uint32_t num_shards) {
  if (num_shards == 1) return 0U;
  if (ranks % num_shards != 0) {
    return Error{Errc::kInvalid, fmt::format("{} ranks do not share {} heads evenly", ranks, num_shards)};
  }
  return rank / (ranks / num_shards);
}

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

Sharding training_sharding(const Parameter& parameter, std::uint32_t num_shards, const ParallelStrategy& strategy) {
  if (config::is_expert(parameter.shard) && strategy.ep > 1) return num_shards > 1 ? Sharding::kEpTp : Sharding::kEp;
  if (num_shards == 1) return Sharding::kNone;
  return strategy.dp > 1 && !config::is_expert(parameter.shard) ? Sharding::kDpTp : Sharding::kTp;
}

Status add_training(const ModelSpec& model, const Parameter& parameter, const ParallelStrategy& strategy,
                    MetaSet& metas) {
  const bool expert = config::is_expert(parameter.shard);
  const std::uint32_t num_shards = config::training_shards(parameter, strategy);
  Result<ParameterCut> cut = make_cut(model, parameter, num_shards);
  if (!cut) return std::move(cut).error();
  cut->dtype = parameter.storage;
  cut->sharding = training_sharding(parameter, num_shards, strategy);
  const std::uint32_t stage = stage_of(parameter, model.dims, strategy.pp);
  const std::uint32_t owner = owner_of(parameter, model.dims, strategy.ep);
  std::vector<LocalShard> holders;
  for (const RankAxes& axes : metas.ranks) {
    if (axes.pp_rank != stage || (expert && axes.ep_rank != owner)) continue;
    Result<std::uint32_t> piece =
        expert ? piece_of(axes.ep_tp_rank, strategy.etp, num_shards) : piece_of(axes.tp_rank, strategy.tp, num_shards);
    if (!piece) return std::move(piece).error();
    holders.push_back({axes.global_rank, *piece});
  }
  return metas.add(*cut, holders);
}

Status add_inference(const ModelSpec& model, const Parameter& parameter, std::uint32_t name, const InstanceSizes& sizes,
                     MetaSet& metas, std::uint32_t pp) {
  const bool expert = config::is_expert(parameter.shard);
  const std::uint32_t num_shards = config::inference_shards(parameter, {.tp = sizes.tp, .ep = sizes.ep});
  Result<ParameterCut> cut = make_cut(model, parameter, num_shards);
  if (!cut) return std::move(cut).error();
  Result<Sharding> sharding = sharding_of_name(model.name_of(parameter), sizes);
  if (!sharding) return std::move(sharding).error();
  cut->name = name;
  cut->dtype = parameter.wire;
  cut->sharding = *sharding;
  // An alias of the embedding stands where the head would: on the last stage.
  const std::uint32_t stage = name == parameter.name ? stage_of(parameter, model.dims, pp) : pp - 1;
  const std::uint32_t owner = owner_of(parameter, model.dims, sizes.ep);
  std::vector<LocalShard> holders;
  for (const RankAxes& axes : metas.ranks) {
    if (axes.pp_rank != stage || (expert && axes.ep_rank != owner)) continue;
    Result<std::uint32_t> piece =
        expert ? piece_of(axes.ep_tp_rank, sizes.ep_tp(), num_shards) : piece_of(axes.tp_rank, sizes.tp, num_shards);
    if (!piece) return std::move(piece).error();
    holders.push_back({axes.global_rank, *piece});
  }
  return metas.add(*cut, holders);
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
  AREAL_TRY(config::check_strategy(strategy));
  AREAL_TRY(check_experts(model.dims, strategy.ep));
  MetaSet metas;
  metas.names = model.names;
  for (std::uint32_t rank = 0; rank < strategy.world_size(); ++rank) {
    metas.ranks.push_back(training_axes(rank, strategy));
  }
  for (const Parameter& parameter : model.parameters) AREAL_TRY(add_training(model, parameter, strategy, metas));
  return metas;
}

Result<MetaSet> inference_metas(const ModelSpec& model, const ParallelStrategy& strategy) {
  const InstanceSizes sizes{.tp = strategy.tp, .attn_tp = strategy.tp, .ep = strategy.ep};
  if (strategy.tp == 0 || strategy.pp == 0) return Error{Errc::kInvalid, "an instance has at least one rank"};
  AREAL_TRY(check_experts(model.dims, strategy.ep));
  if (strategy.tp % strategy.ep != 0) {
    return Error{Errc::kInvalid, fmt::format("ep {} does not divide tp {}", strategy.ep, strategy.tp)};
  }
  MetaSet metas;
  metas.names = model.names;
  for (std::uint32_t rank = 0; rank < strategy.tp * strategy.pp; ++rank) {
    RankAxes axes = expert_axes(rank % strategy.tp, sizes);
    axes.global_rank = rank;
    axes.pp_rank = rank / strategy.tp;
    metas.ranks.push_back(axes);
  }
  for (const Parameter& parameter : model.parameters) {
    AREAL_TRY(add_inference(model, parameter, parameter.name, sizes, metas, strategy.pp));
  }
  for (const config::Alias& alias : model.aliases) {
    const Parameter* source = model.find(alias.source);
    if (source != nullptr) AREAL_TRY(add_inference(model, *source, alias.name, sizes, metas, strategy.pp));
  }
  return metas;
}

}  // namespace areal::proto
