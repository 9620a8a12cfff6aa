// Name rules: first match counts.
#include "engine/proto/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/proto/parameter_grid.h"

namespace areal::proto {
namespace {

using config::ShardClass;

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

struct NameRule {
  std::string_view part;
  ShardClass shard;
};

// In order: an expert's bias and a norm are found before the projection they belong to.
constexpr std::array kDenseRules{
    NameRule{"embed_tokens", ShardClass::kEmbedding},
    NameRule{"lm_head", ShardClass::kHead},
    NameRule{"mlp.gate.", ShardClass::kRouter},
    NameRule{"router", ShardClass::kRouter},
    NameRule{"o_proj", ShardClass::kAttentionRow},
    NameRule{"attn.dense", ShardClass::kAttentionRow},
    NameRule{"attention.dense", ShardClass::kAttentionRow},
    NameRule{"q_proj", ShardClass::kAttentionColumn},
    NameRule{"k_proj", ShardClass::kAttentionColumn},
    NameRule{"v_proj", ShardClass::kAttentionColumn},
    NameRule{"qkv", ShardClass::kAttentionColumn},
    NameRule{"down_proj", ShardClass::kMlpRow},
    NameRule{"dense", ShardClass::kMlpRow},
    NameRule{"gate_proj", ShardClass::kMlpColumn},
    NameRule{"up_proj", ShardClass::kMlpColumn},
    NameRule{"gate_up", ShardClass::kMlpColumn},
};

bool is_routed_expert(std::string_view name) { return has(name, ".experts.") && !has(name, "shared_expert"); }

bool is_attention(ShardClass shard) {
  return shard == ShardClass::kAttentionColumn || shard == ShardClass::kAttentionRow || shard == ShardClass::kEmbedding;
}

}  // namespace

std::uint32_t default_cut_dimension(std::string_view name) {
  if (name.ends_with("bias")) return 0;
  constexpr std::array<std::string_view, 4> kRows{"o_proj", "down_proj", "dense", "w2"};
  return std::ranges::any_of(kRows, [name](std::string_view part) { return has(name, part); }) ? 1 : 0;
}

ShardClass shard_class_of_name(std::string_view name) {
  if (has(name, "norm")) return ShardClass::kReplicated;
  if (is_routed_expert(name)) {
    if (name.ends_with("bias")) return ShardClass::kReplicated;
    return default_cut_dimension(name) == 1 ? ShardClass::kExpertRow : ShardClass::kExpertColumn;
  }
  for (const NameRule& rule : kDenseRules) {
    if (has(name, rule.part)) return rule.shard;
  }
  return ShardClass::kMlpColumn;
}

Result<Sharding> sharding_of_name(std::string_view name, const InstanceSizes& sizes) {
  if (sizes.dp != 1 && !sizes.dp_attention) {
    return Error{Errc::kInvalid, fmt::format("dp_size {} needs data-parallel attention", sizes.dp)};
  }
  if (sizes.ep == 0 || sizes.tp % sizes.ep != 0) {
    return Error{Errc::kInvalid, fmt::format("ep {} does not divide tp {}", sizes.ep, sizes.tp)};
  }
  const ShardClass shard = shard_class_of_name(name);
  if (sizes.tp == 1 || shard == ShardClass::kReplicated || shard == ShardClass::kRouter) return Sharding::kNone;
  if (is_attention(shard)) {
    if (sizes.attn_tp == 1) return Sharding::kNone;
    return sizes.dp > 1 ? Sharding::kDpTp : Sharding::kTp;
  }
  if (shard == ShardClass::kHead) return sizes.head_is_cut ? Sharding::kTp : Sharding::kNone;
  if (config::is_expert(shard) && sizes.ep > 1) return sizes.ep_tp() > 1 ? Sharding::kEpTp : Sharding::kEp;
  return Sharding::kTp;
}

RankAxes expert_axes(std::uint32_t tp_rank, const InstanceSizes& sizes) {
  RankAxes axes;
  axes.tp_rank = tp_rank;
  axes.attn_tp_rank = tp_rank % sizes.attn_tp;
  axes.ep_rank = tp_rank / sizes.ep_tp();
  axes.ep_tp_rank = tp_rank % sizes.ep_tp();
  return axes;
}

PlannerAxis planner_axis(std::string_view name, const RankAxes& axes, const InstanceSizes& sizes) {
  const ShardClass shard = shard_class_of_name(name);
  if (is_attention(shard)) return {axes.attn_tp_rank, sizes.attn_tp};
  if (config::is_expert(shard) && sizes.ep > 1) return {axes.ep_tp_rank, sizes.ep_tp()};
  return {axes.tp_rank, sizes.tp};
}

Result<MeshBox> mesh_box(const Shape& global, const std::vector<MeshAxis>& mesh) {
  MeshBox box;
  box.shape = global;
  std::array<std::uint32_t, kMaxTensorRank> pieces{1, 1, 1};
  std::vector<std::uint8_t> cut_order;
  for (const MeshAxis& axis : mesh) {
    if (axis.cut < 0) continue;
    const auto dim = static_cast<std::uint8_t>(axis.cut);
    if (dim >= global.rank || axis.size == 0 || axis.rank >= axis.size) {
      return Error{Errc::kInvalid,
                   fmt::format("a mesh of {} ranks cannot cut dimension {} of {}", axis.size, dim, global.rank)};
    }
    const std::uint32_t extent = box.shape.extent[dim];
    const std::uint32_t chunk = ceil_chunk(extent, axis.size);
    const auto start = static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, std::uint64_t{chunk} * axis.rank));
    box.offset[dim] += start;
    box.shape.extent[dim] = std::min(chunk, extent - start);
    pieces[dim] *= axis.size;
    cut_order.push_back(dim);
  }
  for (const std::uint8_t dim : cut_order) {
    if (pieces[dim] <= box.num_shards) continue;
    box.num_shards = pieces[dim];
    box.cut = dim;
  }
  return box;
}

}  // namespace areal::proto
