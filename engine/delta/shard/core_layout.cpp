#include "engine/delta/shard/core_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/base/check.h"
#include "engine/proto/layout_convert.h"

namespace areal::delta {
namespace {

using config::ModelSpec;
using config::Parameter;
using proto::ParameterGrid;

struct Rename {
  std::string_view checkpoint;
  std::string_view core;  // Empty: inside the core tensor of another name.
};

constexpr std::array kOutsideLayers{
    Rename{"model.embed_tokens.weight", "module.module.embedding.word_embeddings.weight"},
    Rename{"lm_head.weight", "module.module.output_layer.weight"},
    Rename{"model.norm.weight", "module.module.decoder.final_layernorm.weight"},
};

constexpr std::array kInLayer{
    Rename{"self_attn.q_proj.weight", "self_attention.linear_qkv.weight"},
    Rename{"self_attn.k_proj.weight", ""},
    Rename{"self_attn.v_proj.weight", ""},
    Rename{"self_attn.o_proj.weight", "self_attention.linear_proj.weight"},
    Rename{"self_attn.q_norm.weight", "self_attention.q_layernorm.weight"},
    Rename{"self_attn.k_norm.weight", "self_attention.k_layernorm.weight"},
    Rename{"input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight"},
    Rename{"mlp.gate_proj.weight", "mlp.linear_fc1.weight"},
    Rename{"mlp.up_proj.weight", ""},
    Rename{"mlp.down_proj.weight", "mlp.linear_fc2.weight"},
    Rename{"mlp.gate.weight", "mlp.router.weight"},
};

// "module.module.decoder.layers.3.mlp.linear_fc1.weight" for "model.layers.3.mlp.gate_proj.weight"; empty for a name
// inside another's core tensor; nothing for a name that Megatron core does not know.
std::optional<std::string> core_name(const ModelSpec& model, const Parameter& parameter) {
  const std::string_view name = model.name_of(parameter);
  if (parameter.layer == config::kNoLayer) {
    const auto place = std::ranges::find(kOutsideLayers, name, &Rename::checkpoint);
    return place == kOutsideLayers.end() ? std::nullopt : std::optional(std::string(place->core));
  }
  const std::string prefix = fmt::format("model.layers.{}.", parameter.layer);
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string core_prefix = fmt::format("module.module.decoder.layers.{}.", parameter.layer);
  const std::string_view rest = name.substr(prefix.size());
  if (rest == "post_attention_layernorm.weight") {
    return core_prefix + (model.dims.experts > 0 ? "pre_mlp_layernorm.weight" : "mlp.linear_fc1.layer_norm_weight");
  }
  if (parameter.expert != config::kNoExpert) {
    if (rest.ends_with(".up_proj.weight")) return std::string();
    const std::string_view half = rest.ends_with(".gate_proj.weight") ? "linear_fc1" : "linear_fc2";
    return fmt::format("{}mlp.experts.{}.weight{}", core_prefix, half, parameter.expert);
  }
  const auto place = std::ranges::find(kInLayer, rest, &Rename::checkpoint);
  if (place == kInLayer.end()) return std::nullopt;
  return place->core.empty() ? std::string() : core_prefix + std::string(place->core);
}

// How often as many rows as the first checkpoint tensor has there are in its core tensor's piece.
std::uint32_t rows_of_piece(std::string_view core, std::uint32_t rows, const config::ModelDims& dims) {
  if (core.find("linear_qkv.weight") != std::string_view::npos)
    return rows / dims.heads * (dims.heads + 2 * dims.kv_heads);
  if (core.find("linear_fc1.weight") != std::string_view::npos) return 2 * rows;
  return rows;
}

// The copies of a piece become its owners.
ParameterGrid owners_of(ParameterGrid grid) {
  grid.row_pieces = std::exchange(grid.copies, 1U);
  return grid;
}

Result<CoreTensor> core_tensor(const ModelSpec& model, const Parameter& parameter, const ParameterGrid& grid,
                               std::string name) {
  CoreTensor tensor;
  tensor.name = std::move(name);
  tensor.piece = grid.shard({0, 0}).shape;
  tensor.piece.extent[0] =
      rows_of_piece(tensor.name, parameter.shape.extent[0], model.dims) / (grid.cut == 0 ? grid.tensor_pieces : 1);
  tensor.cut = grid.cut;
  tensor.ranks = owners_of(grid);
  // A tensor rank's piece looks like a whole tensor of a model with fewer heads.
  const std::uint32_t pieces = grid.tensor_pieces;
  if (model.dims.kv_heads % pieces != 0 && tensor.name.find("linear_qkv.weight") != std::string::npos) {
    return Error{Errc::kUnsupported,
                 fmt::format("{} query groups do not divide over {} tensor ranks", model.dims.kv_heads, pieces)};
  }
  const proto::MegatronConfig sizes{std::max(1U, model.dims.heads / pieces), std::max(1U, model.dims.kv_heads / pieces),
                                    model.dims.hidden, model.dims.head_dim};
  Result<proto::Views> views = proto::megatron_to_checkpoint(tensor.name, tensor.piece, sizes, model.dims.experts > 0);
  if (!views) return std::move(views).error();
  std::uint64_t elements = 0;
  for (proto::TensorView& view : *views) {
    const Parameter* found = model.find(view.name);
    if (found == nullptr) return Error{Errc::kInvalid, fmt::format("{} is no tensor of this model", view.name)};
    elements += view.elements();
    tensor.parts.push_back({static_cast<std::uint32_t>(found - model.parameters.data()), std::move(view)});
  }
  AREAL_CHECK(elements == tensor.piece.elements());
  return tensor;
}

}  // namespace

std::uint64_t CoreTensor::chunk() const {
  const std::uint64_t units = (piece.elements() + unit - 1) / unit;
  return (units + owners() - 1) / owners() * unit;
}

FlatRange CoreTensor::owned(std::uint32_t owner) const {
  AREAL_CHECK(owner < owners());
  if (!cuts.empty()) return {cuts[owner], cuts[owner + 1]};
  const std::uint64_t elements = piece.elements();
  return {std::min(elements, chunk() * owner), std::min(elements, chunk() * (owner + 1))};
}

std::uint32_t CoreTensor::owner_of(std::uint64_t element) const {
  AREAL_CHECK(element < piece.elements());
  if (cuts.empty()) return static_cast<std::uint32_t>(element / chunk());
  // The last one that begins here or before; those before it that begin at the same place own nothing.
  return static_cast<std::uint32_t>(std::ranges::upper_bound(cuts, element) - cuts.begin() - 1);
}

proto::Offsets CoreTensor::slice_offset(const CorePart& part, std::uint32_t piece_index) const {
  proto::Offsets offset{};
  if (ranks.tensor_pieces > 1) offset[cut] = piece_index * part.view.shape.extent[cut];
  return offset;
}

Result<CoreLayout> megatron_core_layout(const ModelSpec& model, const config::ParallelStrategy& strategy) {
  Result<proto::GridSet> grids = proto::training_grids(model, strategy);
  if (!grids) return std::move(grids).error();
  CoreLayout layout{model, {}, grids->world};
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    std::optional<std::string> name = core_name(model, model.parameters[i]);
    if (!name) {
      return Error{Errc::kUnsupported,
                   fmt::format("Megatron core has no tensor for {}", model.name_of(model.parameters[i]))};
    }
    if (name->empty()) continue;
    Result<CoreTensor> tensor = core_tensor(model, model.parameters[i], grids->parameters[i], std::move(*name));
    if (!tensor) return std::move(tensor).error();
    layout.tensors.push_back(std::move(*tensor));
  }
  return layout;
}

Result<CoreLayout> fsdp_core_layout(const ModelSpec& model, const proto::FsdpSizes& sizes) {
  Result<proto::GridSet> grids = proto::fsdp_grids(model, sizes);
  if (!grids) return std::move(grids).error();
  CoreLayout layout{model, {}, grids->world};
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const ParameterGrid& grid = grids->parameters[i];
    if (grid.shape.extent[grid.cut] % grid.tensor_pieces != 0) {
      return Error{Errc::kInvalid, fmt::format("{} does not divide over {} tensor ranks",
                                               model.name_of(model.parameters[i]), grid.tensor_pieces)};
    }
    CoreTensor tensor;
    tensor.name = model.name_of(model.parameters[i]);
    tensor.piece = grid.shape;
    tensor.piece.extent[grid.cut] /= grid.tensor_pieces;
    tensor.cut = grid.cut;
    tensor.ranks = grid;
    tensor.unit = std::max<std::uint64_t>(1, proto::row_size(tensor.piece));
    tensor.parts.push_back(
        {static_cast<std::uint32_t>(i), proto::row_view(tensor.name, tensor.piece, 0, tensor.piece.extent[0])});
    layout.tensors.push_back(std::move(tensor));
  }
  return layout;
}

}  // namespace areal::delta
