// Rules that say from a parameter's name how it is cut, and metas of whole layouts.
//
// Rules: the first that matches counts. They are the engines' own (they see names only); a ModelSpec carries the same
// answer as ShardClass. Pure functions.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/config/layout.h"
#include "engine/config/model.h"
#include "engine/proto/shard_meta.h"

namespace areal::proto {

// The dimension that tensor parallelism cuts: 1 for o_proj, down_proj, dense and fused expert w2 weights, 0 for all
// others and for every bias.
std::uint32_t default_cut_dimension(std::string_view name);

// The class of a parameter by its name.
config::ShardClass shard_class_of_name(std::string_view name);

// Sizes inside one inference instance.
struct InstanceSizes {
  std::uint32_t tp = 1;
  std::uint32_t attn_tp = 1;
  std::uint32_t dp = 1;
  std::uint32_t ep = 1;
  bool head_is_cut = true;    // lm_head follows its own flag.
  bool dp_attention = false;  // dp > 1 without it is refused.

  [[nodiscard]] constexpr std::uint32_t ep_tp() const { return tp / ep; }
};

// How the named parameter is spread. Refuses dp > 1 without data-parallel attention, and an ep that does not divide tp.
Result<Sharding> sharding_of_name(std::string_view name, const InstanceSizes& sizes);

// Axes of the expert grid inside one instance: ep_rank = tp_rank / ep_tp, ep_tp_rank = tp_rank % ep_tp.
RankAxes expert_axes(std::uint32_t tp_rank, const InstanceSizes& sizes);

// Which piece of how many a rank holds: attention counts attention-tensor ranks, everything dense counts tensor ranks.
// Context-parallel ranks never appear: their copies are ordinary replicas.
struct PlannerAxis {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  constexpr bool operator==(const PlannerAxis&) const = default;
};
PlannerAxis planner_axis(std::string_view name, const RankAxes& axes, const InstanceSizes& sizes);

// A rank's box of a tensor that is distributed over a device mesh, outermost mesh dimension first. Chunks are rounded
// up, as the sharding library does, so the last ones may be shorter or empty.
struct MeshAxis {
  std::uint32_t size = 1;
  std::uint32_t rank = 0;
  std::int8_t cut = -1;  // Tensor dimension this mesh dimension cuts, or -1 for a copy.
};
struct MeshBox {
  Offsets offset{};
  Shape shape;
  std::uint8_t cut = 0;          // Dimension with most pieces; of equal ones the one that is cut first.
  std::uint32_t num_shards = 1;  // Pieces along `cut`.
};
Result<MeshBox> mesh_box(const Shape& global, const std::vector<MeshAxis>& mesh);

// The global index of a layer that a pipeline rank numbers locally, counting in (virtual stage, pipeline rank) order.
constexpr std::uint32_t global_layer(std::uint32_t local_layer, std::uint32_t virtual_stage, std::uint32_t pp_rank,
                                     std::uint32_t layers_per_stage, std::uint32_t pp_size) {
  return (virtual_stage * pp_size + pp_rank) * layers_per_stage + local_layer;
}

// Which pipeline stage holds a parameter: layers are split evenly, the first stages take the remainder; the embedding
// is on the first, norm and head on the last.
std::uint32_t stage_of(const config::Parameter& parameter, const config::ModelDims& dims, std::uint32_t pp_size);

// What the ranks of a Megatron layout hold: rank = tp + tp_size * (cp + cp_size * (dp + dp_size * pp)) for attention,
// rank = etp + etp_size * (ep + ep_size * (edp + edp_size * pp)) for experts. Expert e lives on owner e / (experts /
// ep). Refuses an extent that does not divide by its shard count.
Result<MetaSet> training_metas(const config::ModelSpec& model, const config::ParallelStrategy& strategy);

// What the ranks of ONE inference instance of tp x pp ranks hold (dp counts instances and is ignored here). Alias names
// are part of it. More tensor ranks than key-value heads hold copies of heads.
Result<MetaSet> inference_metas(const config::ModelSpec& model, const config::ParallelStrategy& strategy);

}  // namespace areal::proto
