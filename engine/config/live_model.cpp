// Picks the tensors that a simulation holds as real numbers, and shrinks them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/config/model.h"

namespace areal::config {
namespace {

// A cut extent is at least this long where the shard counts allow it, so that a shard is more than one row.
constexpr std::uint32_t kMinCutExtent = 8;

// Whether `expert` is among the first `count` that its owner holds, when `owners` ranks share `experts`.
bool leads_its_owner(std::uint32_t expert, std::uint32_t experts, std::uint32_t owners, std::uint32_t count) {
  return expert % std::max(1U, experts / owners) < count;
}

bool is_live(const Parameter& parameter, const ModelDims& dims, const ParallelStrategy& train,
             const ParallelStrategy& infer, const LiveOptions& options) {
  if (options.all_names) return true;
  if (parameter.layer != kNoLayer && parameter.layer > 1 && parameter.layer + 1U != dims.layers) return false;
  if (parameter.expert == kNoExpert) return true;
  return leads_its_owner(parameter.expert, dims.experts, train.ep, options.experts_per_owner) ||
         leads_its_owner(parameter.expert, dims.experts, infer.ep, options.experts_per_owner);
}

// The smallest multiple of `step` that is at least `floor`.
std::uint32_t round_up(std::uint32_t floor, std::uint32_t step) { return (floor + step - 1) / step * step; }

Result<Shape> shrunk(const Parameter& parameter, std::uint32_t divisor, std::uint32_t min_elements) {
  const std::uint8_t rank = parameter.shape.rank;
  const std::uint32_t cut = cut_dimension(parameter.shard);
  const std::uint32_t cut_extent = round_up(rank == 1 ? min_elements : std::min(kMinCutExtent, min_elements), divisor);
  if (cut_extent > 2 * min_elements || cut >= rank) {
    return Error{Errc::kInvalid, fmt::format("{} shards do not fit into a live tensor of {} to {} elements", divisor,
                                             min_elements, 2 * min_elements)};
  }
  Shape shape;
  shape.rank = rank;
  std::uint32_t rest = (min_elements + cut_extent - 1) / cut_extent;
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (i == cut) {
      shape.extent[i] = cut_extent;
    } else {
      shape.extent[i] = rest;
      rest = 1;
    }
  }
  return shape;
}

}  // namespace

std::uint32_t training_shards(const Parameter& parameter, const ParallelStrategy& strategy) {
  if (parameter.shard == ShardClass::kReplicated || parameter.shard == ShardClass::kRouter) return 1;
  const std::uint32_t ranks = is_expert(parameter.shard) ? strategy.etp : strategy.tp;
  return parameter.max_shards > 0 ? std::min<std::uint32_t>(ranks, parameter.max_shards) : ranks;
}

std::uint32_t inference_shards(const Parameter& parameter, const ParallelStrategy& strategy) {
  if (parameter.shard == ShardClass::kReplicated || parameter.shard == ShardClass::kRouter) return 1;
  const std::uint32_t ranks = is_expert(parameter.shard) ? strategy.tp / strategy.ep : strategy.tp;
  return parameter.max_shards > 0 ? std::min<std::uint32_t>(ranks, parameter.max_shards) : ranks;
}

Result<ModelSpec> live_model(const ModelSpec& full, const ParallelStrategy& train, const ParallelStrategy& infer,
                             const LiveOptions& options) {
  if (options.min_elements == 0) return Error{Errc::kInvalid, "a live tensor needs at least one element"};
  ModelSpec live;
  live.title = full.title;
  live.dims = full.dims;
  live.names = full.names;
  live.aliases = full.aliases;
  std::vector<std::uint32_t> kept(full.parameters.size(), 0);
  for (std::size_t i = 0; i < full.parameters.size(); ++i) {
    Parameter parameter = full.parameters[i];
    if (!is_live(parameter, full.dims, train, infer, options)) continue;
    const std::uint32_t divisor = std::lcm(training_shards(parameter, train), inference_shards(parameter, infer));
    Result<Shape> shape = shrunk(parameter, divisor, options.min_elements);
    if (!shape) return std::move(shape).error();
    parameter.shape = *shape;
    live.parameters.push_back(parameter);
    kept[i] = static_cast<std::uint32_t>(live.parameters.size());
  }
  for (const std::uint32_t index : full.order) {
    if (kept[index] > 0) live.order.push_back(kept[index] - 1);
  }
  return live;
}

}  // namespace areal::config
