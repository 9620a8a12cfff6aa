// Looks parameters up and builds the Qwen3 family from its dimensions.
#include "engine/config/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace areal::config {
namespace {

// Collects parameters in forward order; names are interned at the end.
class ModelBuilder {
 public:
  explicit ModelBuilder(const ModelDims& dims) : dims_(dims) {}

  void add(std::string name, Shape shape, ShardClass shard, std::uint16_t max_shards = 0) {
    Parameter parameter;
    parameter.shape = shape;
    parameter.shard = shard;
    parameter.layer = layer_;
    parameter.expert = expert_;
    parameter.max_shards = max_shards;
    if (shard == ShardClass::kRouter) {
      parameter.storage = dims_.router_storage;
      parameter.wire = dims_.router_wire;
    }
    names_.push_back(std::move(name));
    parameters_.push_back(parameter);
  }

  void add_layer(std::uint16_t layer) {
    layer_ = layer;
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    add(prefix + "input_layernorm.weight", Shape::of(dims_.hidden), ShardClass::kReplicated);
    add_attention(prefix + "self_attn.");
    add(prefix + "post_attention_layernorm.weight", Shape::of(dims_.hidden), ShardClass::kReplicated);
    if (dims_.experts == 0) {
      add_mlp(prefix + "mlp.", ShardClass::kMlpColumn, ShardClass::kMlpRow);
    } else {
      add(prefix + "mlp.gate.weight", Shape::of(dims_.experts, dims_.hidden), ShardClass::kRouter);
      for (std::uint32_t expert = 0; expert < dims_.experts; ++expert) {
        expert_ = static_cast<std::uint16_t>(expert);
        add_mlp(fmt::format("{}mlp.experts.{}.", prefix, expert), ShardClass::kExpertColumn, ShardClass::kExpertRow);
      }
      expert_ = kNoExpert;
    }
    layer_ = kNoLayer;
  }

  ModelSpec finish(std::string title) {
    NameTable table = names_;
    if (dims_.tied_embedding) table.push_back("lm_head.weight");
    std::ranges::stable_sort(table);
    const auto index_of = [&table](const std::string& name) {
      return static_cast<std::uint32_t>(std::ranges::lower_bound(table, name) - table.begin());
    };
    ModelSpec model;
    for (std::size_t i = 0; i < names_.size(); ++i) parameters_[i].name = index_of(names_[i]);
    std::vector<std::uint32_t> by_name(names_.size());
    std::iota(by_name.begin(), by_name.end(), 0U);
    std::ranges::stable_sort(by_name, {}, [this](std::uint32_t i) { return parameters_[i].name; });
    model.order.resize(names_.size());
    for (std::uint32_t i = 0; i < by_name.size(); ++i) {
      model.parameters.push_back(parameters_[by_name[i]]);
      model.order[by_name[i]] = i;
    }
    if (dims_.tied_embedding) {
      model.aliases.push_back({index_of("lm_head.weight"), index_of("model.embed_tokens.weight")});
    }
    model.title = std::move(title);
    model.dims = dims_;
    model.names = std::make_shared<const NameTable>(std::move(table));
    return model;
  }

 private:
  void add_attention(const std::string& prefix) {
    const std::uint32_t query = dims_.heads * dims_.head_dim;
    const std::uint32_t key = dims_.kv_heads * dims_.head_dim;
    const auto heads = static_cast<std::uint16_t>(dims_.heads);
    const auto kv_heads = static_cast<std::uint16_t>(dims_.kv_heads);
    add(prefix + "q_proj.weight", Shape::of(query, dims_.hidden), ShardClass::kAttentionColumn, heads);
    add(prefix + "k_proj.weight", Shape::of(key, dims_.hidden), ShardClass::kAttentionColumn, kv_heads);
    add(prefix + "v_proj.weight", Shape::of(key, dims_.hidden), ShardClass::kAttentionColumn, kv_heads);
    add(prefix + "q_norm.weight", Shape::of(dims_.head_dim), ShardClass::kReplicated);
    add(prefix + "k_norm.weight", Shape::of(dims_.head_dim), ShardClass::kReplicated);
    add(prefix + "o_proj.weight", Shape::of(dims_.hidden, query), ShardClass::kAttentionRow, heads);
  }

  void add_mlp(const std::string& prefix, ShardClass column, ShardClass row) {
    add(prefix + "gate_proj.weight", Shape::of(dims_.mlp_width, dims_.hidden), column);
    add(prefix + "up_proj.weight", Shape::of(dims_.mlp_width, dims_.hidden), column);
    add(prefix + "down_proj.weight", Shape::of(dims_.hidden, dims_.mlp_width), row);
  }

  ModelDims dims_;
  std::vector<std::string> names_;
  std::vector<Parameter> parameters_;
  std::uint16_t layer_ = kNoLayer;
  std::uint16_t expert_ = kNoExpert;
};

Status check_dims(const ModelDims& dims) {
  const bool sized = dims.layers > 0 && dims.hidden > 0 && dims.heads > 0 && dims.kv_heads > 0 && dims.head_dim > 0 &&
                     dims.vocabulary > 0 && dims.mlp_width > 0;
  if (!sized)
    return Error{Errc::kInvalid, "a model needs layers, hidden, heads, kv_heads, head_dim, vocabulary, width"};
  if (dims.heads % dims.kv_heads != 0) {
    return Error{Errc::kInvalid, fmt::format("{} heads do not divide into {} kv heads", dims.heads, dims.kv_heads)};
  }
  if (dims.layers >= kNoLayer || dims.experts >= kNoExpert || dims.heads >= kNoExpert) {
    return Error{Errc::kInvalid, "at most 65,534 layers, experts and heads"};
  }
  return Unit{};
}

template <class Weigh>
std::uint64_t sum_over(const std::vector<Parameter>& parameters, Weigh weigh) {
  std::uint64_t total = 0;
  for (const Parameter& parameter : parameters) total += parameter.shape.elements() * weigh(parameter);
  return total;
}

}  // namespace

const Parameter* ModelSpec::find(std::uint32_t name) const {
  const auto place = std::ranges::lower_bound(parameters, name, {}, &Parameter::name);
  return place != parameters.end() && place->name == name ? &*place : nullptr;
}

const Parameter* ModelSpec::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(*names, name);
  if (place == names->end() || *place != name) return nullptr;
  return find(static_cast<std::uint32_t>(place - names->begin()));
}

std::uint64_t ModelSpec::elements() const {
  return sum_over(parameters, [](const Parameter&) { return 1U; });
}
std::uint64_t ModelSpec::storage_bytes() const {
  return sum_over(parameters, [](const Parameter& parameter) { return size_of(parameter.storage); });
}
std::uint64_t ModelSpec::wire_bytes() const {
  return sum_over(parameters, [](const Parameter& parameter) { return size_of(parameter.wire); });
}

ModelDims qwen3_30b_a3b_dims() {
  return {.layers = 48,
          .hidden = 2048,
          .heads = 32,
          .kv_heads = 4,
          .head_dim = 128,
          .vocabulary = 151936,
          .mlp_width = 768,
          .experts = 128};
}

ModelDims qwen3_0_6b_dims() {
  return {.layers = 28,
          .hidden = 1024,
          .heads = 16,
          .kv_heads = 8,
          .head_dim = 128,
          .vocabulary = 151936,
          .mlp_width = 3072,
          .experts = 0,
          .tied_embedding = true};
}

ModelDims tiny_dims() {
  return {.layers = 4,
          .hidden = 32,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 8,
          .vocabulary = 64,
          .mlp_width = 16,
          .experts = 8};
}

Result<ModelSpec> qwen3_moe_model(const ModelDims& dims, std::string title) {
  AREAL_TRY(check_dims(dims));
  ModelBuilder builder(dims);
  builder.add("model.embed_tokens.weight", Shape::of(dims.vocabulary, dims.hidden), ShardClass::kEmbedding);
  for (std::uint32_t layer = 0; layer < dims.layers; ++layer) builder.add_layer(static_cast<std::uint16_t>(layer));
  builder.add("model.norm.weight", Shape::of(dims.hidden), ShardClass::kReplicated);
  if (!dims.tied_embedding) {
    builder.add("lm_head.weight", Shape::of(dims.vocabulary, dims.hidden), ShardClass::kHead);
  }
  return builder.finish(std::move(title));
}

Result<ModelSpec> model_by_name(std::string_view title) {
  if (title == "qwen3-30b-a3b") return qwen3_moe_model(qwen3_30b_a3b_dims(), std::string(title));
  if (title == "qwen3-0.6b") return qwen3_moe_model(qwen3_0_6b_dims(), std::string(title));
  if (title == "tiny") return qwen3_moe_model(tiny_dims(), std::string(title));
  if (title == "tiny_fp32_router") {
    ModelDims dims = tiny_dims();
    dims.router_storage = dims.router_wire = DType::kF32;
    return qwen3_moe_model(dims, std::string(title));
  }
  return Error{Errc::kInvalid,
               fmt::format("unknown model '{}'; known: qwen3-30b-a3b, qwen3-0.6b, tiny, tiny_fp32_router", title)};
}

}  // namespace areal::config
