#include "engine/proto/layout_grids.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// A parameter cut into `pieces`.
Result<ParameterGrid> cut_grid(const ModelSpec& model, const Parameter& parameter, std::uint32_t pieces) {
  ParameterGrid grid;
  grid.name = parameter.name;
  grid.shape = parameter.shape;
  grid.cut = static_cast<std::uint8_t>(config::cut_dimension(parameter.shard));
  grid.tensor_pieces = pieces;
  if (grid.cut < grid.shape.rank) return grid;
  return Error{Errc::kInvalid, fmt::format("{} has no dimension {} to cut", model.name_of(parameter), grid.cut)};
}

Status check_divides(const ModelSpec& model, const Parameter& parameter, const ParameterGrid& grid) {
  const std::uint32_t extent = grid.shape.extent[grid.cut];
  if (extent % grid.tensor_pieces == 0) return Unit{};
  return Error{Errc::kInvalid, fmt::format("{}: dimension {} of {} does not divide by {} shards",
                                           model.name_of(parameter), grid.cut, extent, grid.tensor_pieces)};
}

// More tensor ranks than pieces: neighbours hold equal ones.
Status share_pieces(ParameterGrid& grid, std::uint32_t ranks) {
  if (ranks % grid.tensor_pieces != 0) {
    return Error{Errc::kInvalid, fmt::format("{} ranks do not share {} heads evenly", ranks, grid.tensor_pieces)};
  }
  grid.neighbours = ranks / grid.tensor_pieces;
  return Unit{};
}

Sharding training_sharding(const Parameter& parameter, std::uint32_t pieces, const ParallelStrategy& strategy) {
  if (config::is_expert(parameter.shard) && strategy.ep > 1) return pieces > 1 ? Sharding::kEpTp : Sharding::kEp;
  if (pieces == 1) return Sharding::kNone;
  return strategy.dp > 1 && !config::is_expert(parameter.shard) ? Sharding::kDpTp : Sharding::kTp;
}

Result<ParameterGrid> training_grid(const ModelSpec& model, const Parameter& parameter,
                                    const ParallelStrategy& strategy) {
  const bool expert = config::is_expert(parameter.shard);
  const std::uint32_t pieces = config::training_shards(parameter, strategy);
  Result<ParameterGrid> grid = cut_grid(model, parameter, pieces);
  if (!grid) return grid;
  AREAL_TRY(check_divides(model, parameter, *grid));
  AREAL_TRY(share_pieces(*grid, expert ? strategy.etp : strategy.tp));
  grid->dtype = parameter.storage;
  grid->sharding = training_sharding(parameter, pieces, strategy);
  const std::uint32_t stage_ranks = strategy.world_size() / strategy.pp;
  grid->first_rank = stage_of(parameter, model.dims, strategy.pp) * stage_ranks;
  grid->stride = strategy.tp;
  if (expert) {
    grid->first_rank += owner_of(parameter, model.dims, strategy.ep) * strategy.etp;
    grid->stride = strategy.etp * strategy.ep;
  }
  grid->copies = stage_ranks / grid->stride;
  return grid;
}

// `name` is the parameter's own or an alias'.
Result<ParameterGrid> inference_grid(const ModelSpec& model, const Parameter& parameter, std::uint32_t name,
                                     const InstanceSizes& sizes, std::uint32_t pp) {
  const bool expert = config::is_expert(parameter.shard);
  const std::uint32_t pieces = config::inference_shards(parameter, {.tp = sizes.tp, .ep = sizes.ep});
  Result<ParameterGrid> grid = cut_grid(model, parameter, pieces);
  if (!grid) return grid;
  AREAL_TRY(check_divides(model, parameter, *grid));
  AREAL_TRY(share_pieces(*grid, expert ? sizes.ep_tp() : sizes.tp));
  Result<Sharding> sharding = sharding_of_name(model.name_of(parameter), sizes);
  if (!sharding) return std::move(sharding).error();
  grid->name = name;
  grid->dtype = parameter.wire;
  grid->sharding = *sharding;
  // An alias of the embedding stands where the head would: on the last stage.
  const std::uint32_t stage = name == parameter.name ? stage_of(parameter, model.dims, pp) : pp - 1;
  grid->first_rank = stage * sizes.tp;
  if (expert) grid->first_rank += owner_of(parameter, model.dims, sizes.ep) * sizes.ep_tp();
  grid->stride = sizes.tp;
  return grid;
}

}  // namespace

Result<GridSet> training_grids(const ModelSpec& model, const ParallelStrategy& strategy) {
  AREAL_TRY(config::check_strategy(strategy));
  AREAL_TRY(check_experts(model.dims, strategy.ep));
  GridSet grids{model.names, {}, strategy.world_size()};
  for (const Parameter& parameter : model.parameters) {
    Result<ParameterGrid> grid = training_grid(model, parameter, strategy);
    if (!grid) return std::move(grid).error();
    grids.parameters.push_back(*grid);
  }
  return grids;
}

Result<GridSet> inference_grids(const ModelSpec& model, const ParallelStrategy& strategy) {
  const InstanceSizes sizes{.tp = strategy.tp, .attn_tp = strategy.tp, .ep = strategy.ep};
  if (strategy.tp == 0 || strategy.pp == 0) return Error{Errc::kInvalid, "an instance has at least one rank"};
  const std::uint64_t world = std::uint64_t{strategy.tp} * strategy.pp;
  if (world > 0xFFFF) return Error{Errc::kInvalid, fmt::format("an instance of {} ranks; at most 65535", world)};
  AREAL_TRY(check_experts(model.dims, strategy.ep));
  if (strategy.tp % strategy.ep != 0) {
    return Error{Errc::kInvalid, fmt::format("ep {} does not divide tp {}", strategy.ep, strategy.tp)};
  }
  GridSet grids{model.names, {}, static_cast<std::uint32_t>(world)};
  const auto add = [&](const Parameter& parameter, std::uint32_t name) -> Status {
    Result<ParameterGrid> grid = inference_grid(model, parameter, name, sizes, strategy.pp);
    if (!grid) return std::move(grid).error();
    grids.parameters.push_back(*grid);
    return Unit{};
  };
  for (const Parameter& parameter : model.parameters) AREAL_TRY(add(parameter, parameter.name));
  for (const config::Alias& alias : model.aliases) {
    const Parameter* source = model.find(alias.source);
    if (source != nullptr) AREAL_TRY(add(*source, alias.name));
  }
  return grids;
}

Result<GridSet> fsdp_grids(const ModelSpec& model, const FsdpSizes& sizes) {
  const std::uint64_t world = std::uint64_t{sizes.shards} * sizes.tp * sizes.copies;
  if (world == 0 || world > 0xFFFF) return Error{Errc::kInvalid, fmt::format("a world of {} ranks", world)};
  GridSet grids{model.names, {}, static_cast<std::uint32_t>(world)};
  for (const Parameter& parameter : model.parameters) {
    // Whole experts are what expert ranks divide; here there are none, so tensor ranks cut them.
    const std::uint32_t pieces = config::training_shards(parameter, {.tp = sizes.tp, .etp = sizes.tp});
    Result<ParameterGrid> grid = cut_grid(model, parameter, pieces);
    if (!grid) return std::move(grid).error();
    AREAL_TRY(share_pieces(*grid, sizes.tp));
    grid->dtype = parameter.storage;
    grid->sharding = pieces > 1 ? Sharding::kDpTp : Sharding::kNone;
    grid->row_pieces = sizes.shards;
    grid->copies = sizes.copies;
    grid->stride = sizes.tp;
    grids.parameters.push_back(*grid);
  }
  return grids;
}

}  // namespace areal::proto
