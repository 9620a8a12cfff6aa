// Takes Megatron core tensors apart into checkpoint tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "engine/proto/layout_convert.h"

namespace areal::proto {
namespace {

struct Rename {
  std::string_view from;
  std::string_view to;
};

constexpr std::string_view kLayerPrefix = "module.module.decoder.layers.";

constexpr std::array kOutsideLayers{
    Rename{"module.module.embedding.word_embeddings.weight", "model.embed_tokens.weight"},
    Rename{"module.module.output_layer.weight", "lm_head.weight"},
    Rename{"module.module.decoder.final_layernorm.weight", "model.norm.weight"},
};

constexpr std::array kInLayer{
    Rename{"self_attention.linear_proj.weight", "self_attn.o_proj.weight"},
    Rename{"self_attention.linear_qkv.layer_norm_weight", "input_layernorm.weight"},
    Rename{"self_attention.q_layernorm.weight", "self_attn.q_norm.weight"},
    Rename{"self_attention.k_layernorm.weight", "self_attn.k_norm.weight"},
    Rename{"mlp.linear_fc2.weight", "mlp.down_proj.weight"},
    Rename{"mlp.linear_fc1.layer_norm_weight", "post_attention_layernorm.weight"},
};

constexpr std::array kInExpertLayer{
    Rename{"pre_mlp_layernorm.weight", "post_attention_layernorm.weight"},
    Rename{"mlp.router.weight", "mlp.gate.weight"},
    Rename{"mlp.router.expert_bias", "mlp.gate.e_score_correction_bias"},
    Rename{"mlp.shared_experts.linear_fc2.weight", "mlp.shared_experts.down_proj.weight"},
};

template <std::size_t N>
std::optional<std::string_view> renamed(const std::array<Rename, N>& table, std::string_view name) {
  const auto place = std::ranges::find(table, name, &Rename::from);
  if (place == table.end()) return std::nullopt;
  return place->to;
}

Error unknown(std::string_view name) { return {Errc::kInvalid, fmt::format("Unknown parameter name: {}", name)}; }

Views whole(std::string name, const Shape& shape) { return {row_view(std::move(name), shape, 0, shape.extent[0])}; }

Result<Views> gate_and_up(const std::string& prefix, std::string_view name, const Shape& shape) {
  if (shape.extent[0] % 2 != 0) {
    return Error{Errc::kInvalid, fmt::format("{}: {} rows are not divisible into gate and up", name, shape.extent[0])};
  }
  const std::uint32_t half = shape.extent[0] / 2;
  return Views{row_view(prefix + "gate_proj.weight", shape, 0, half),
               row_view(prefix + "up_proj.weight", shape, half, half)};
}

// One of q, k, v: `heads` heads of every group, from head `first` of the group on.
TensorView group_view(std::string name, const Shape& source, std::uint32_t groups, std::uint32_t first_row,
                      std::uint32_t rows) {
  const std::uint64_t row = row_size(source);
  const std::uint64_t group = source.elements() / groups;
  TensorView view;
  view.name = std::move(name);
  view.shape = source;
  view.shape.extent[0] = groups * rows;
  view.offset = first_row * row;
  view.extent = {1, groups, rows, static_cast<std::uint32_t>(row)};
  view.stride = {0, group, row, 1};
  return view;
}

Result<Views> split_groups(const std::string& prefix, std::string_view kind, const Shape& shape,
                           const MegatronConfig& config) {
  const std::uint32_t groups = config.query_groups;
  if (groups == 0 || config.heads % groups != 0) {
    return Error{Errc::kInvalid, fmt::format("{} heads do not divide into {} query groups", config.heads, groups)};
  }
  const std::uint32_t width = config.kv_channels > 0 ? config.kv_channels : config.hidden / config.heads;
  const std::uint32_t query = config.heads / groups * width;
  if (shape.extent[0] != groups * (query + 2 * width)) {
    return Error{Errc::kInvalid, fmt::format("{}linear_qkv has {} rows, not divisible into {} groups of {}", prefix,
                                             shape.extent[0], groups, query + 2 * width)};
  }
  const std::string start = prefix + "self_attn.";
  return Views{group_view(fmt::format("{}q_proj.{}", start, kind), shape, groups, 0, query),
               group_view(fmt::format("{}k_proj.{}", start, kind), shape, groups, query, width),
               group_view(fmt::format("{}v_proj.{}", start, kind), shape, groups, query + width, width)};
}

// mlp.experts.linear_fc1.weight17: the number is the expert.
Result<Views> expert_views(const std::string& prefix, std::string_view full, std::string_view rest,
                           const Shape& shape) {
  const auto place = rest.rfind("weight");
  const std::string_view which = rest.substr(0, place);
  if (place != std::string_view::npos && (which == "linear_fc1." || which == "linear_fc2.")) {
    const std::string expert = fmt::format("{}mlp.experts.{}.", prefix, rest.substr(place + 6));
    if (which == "linear_fc1.") return gate_and_up(expert, full, shape);
    return whole(expert + "down_proj.weight", shape);
  }
  return Error{Errc::kInvalid, fmt::format("Unknown expert parameter name: {}", full)};
}

}  // namespace

Result<Views> megatron_to_checkpoint(std::string_view name, const Shape& shape, const MegatronConfig& config,
                                     bool with_experts) {
  if (shape.rank == 0) return Error{Errc::kInvalid, fmt::format("{}: a tensor has at least one dimension", name)};
  if (const auto to = renamed(kOutsideLayers, name)) return whole(std::string(*to), shape);
  if (!name.starts_with(kLayerPrefix)) return unknown(name);
  std::string_view rest = name.substr(kLayerPrefix.size());
  std::uint32_t layer = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (problem != std::errc() || digits >= rest.size() || rest[digits] != '.') return unknown(name);
  rest.remove_prefix(digits + 1);
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  if (rest == "self_attention.linear_qkv.weight") return split_groups(prefix, "weight", shape, config);
  if (rest == "self_attention.linear_qkv.bias") return split_groups(prefix, "bias", shape, config);
  if (rest == "mlp.linear_fc1.weight") return gate_and_up(prefix + "mlp.", name, shape);
  if (const auto to = renamed(kInLayer, rest)) return whole(prefix + std::string(*to), shape);
  if (!with_experts) return unknown(name);
  constexpr std::string_view kExperts = "mlp.experts.";
  if (rest.starts_with(kExperts)) return expert_views(prefix, name, rest.substr(kExperts.size()), shape);
  if (rest == "mlp.shared_experts.linear_fc1.weight") return gate_and_up(prefix + "mlp.shared_experts.", name, shape);
  if (const auto to = renamed(kInExpertLayer, rest)) return whole(prefix + std::string(*to), shape);
  return unknown(name);
}

}  // namespace areal::proto
