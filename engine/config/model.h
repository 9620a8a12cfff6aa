// The parameters of a model: names, shapes, dtypes and how each is cut, for real sizes and for a small live copy.
//
// A ModelSpec is an immutable value once built; its name table is shared between copies and with the live models made
// from it, so a name index means the same in all of them. Safe to share between threads.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/result.h"
#include "engine/config/layout.h"

namespace areal::config {

inline constexpr std::size_t kMaxTensorRank = 3;

// Extents of a tensor of rank 1 to 3; unused extents are 0.
struct Shape {
  std::array<std::uint32_t, kMaxTensorRank> extent{};
  std::uint8_t rank = 0;

  static constexpr Shape of(std::uint32_t a) { return {{a, 0, 0}, 1}; }
  static constexpr Shape of(std::uint32_t a, std::uint32_t b) { return {{a, b, 0}, 2}; }
  static constexpr Shape of(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return {{a, b, c}, 3}; }
  [[nodiscard]] constexpr std::uint64_t elements() const {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < rank; ++i) product *= extent[i];
    return product;
  }
  constexpr bool operator==(const Shape&) const = default;
};

// How a parameter is cut. A column class is cut along dimension 0, a row class along dimension 1.
enum class ShardClass : std::uint8_t {
  kReplicated,       // Norms: every rank holds all of it.
  kRouter,           // The expert router; replicated, often kept in fp32.
  kEmbedding,        // Token embedding, by vocabulary.
  kHead,             // Output head, by vocabulary.
  kAttentionColumn,  // q, k and v projections.
  kAttentionRow,     // Output projection of attention.
  kMlpColumn,        // Dense gate and up projections.
  kMlpRow,           // Dense down projection.
  kExpertColumn,     // Gate and up projection of one routed expert.
  kExpertRow,        // Down projection of one routed expert.
};

constexpr std::array<std::string_view, 10> enum_names(ShardClass /*tag*/) {
  return {"replicated",    "router",     "embedding", "head",          "attention_column",
          "attention_row", "mlp_column", "mlp_row",   "expert_column", "expert_row"};
}

constexpr bool is_expert(ShardClass shard) {
  return shard == ShardClass::kExpertColumn || shard == ShardClass::kExpertRow;
}

inline constexpr std::uint16_t kNoLayer = 0xFFFF;
inline constexpr std::uint16_t kNoExpert = 0xFFFF;

struct Parameter {
  std::uint32_t name = 0;        // Index into ModelSpec::names.
  Shape shape;                   // Global, uncut.
  DType storage = DType::kBf16;  // What the training side holds.
  DType wire = DType::kBf16;     // What the inference side holds and what is sent.
  ShardClass shard = ShardClass::kReplicated;
  std::uint16_t layer = kNoLayer;
  std::uint16_t expert = kNoExpert;
  std::uint16_t max_shards = 0;  // Key and value heads: more ranks than heads hold copies. 0 is no limit.
};

// `name` is served from the parameter `source`; the training side never emits it.
struct Alias {
  std::uint32_t name = 0;
  std::uint32_t source = 0;
};

struct ModelDims {
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t mlp_width = 0;  // Of one expert in a model with experts.
  std::uint32_t experts = 0;    // 0 is a dense model.
  bool tied_embedding = false;
  DType router_storage = DType::kBf16;
  DType router_wire = DType::kBf16;
};

using NameTable = std::vector<std::string>;

struct ModelSpec {
  std::string title;
  ModelDims dims;
  std::shared_ptr<const NameTable> names;  // Sorted, without repeats; holds alias names too.
  std::vector<Parameter> parameters;       // Ascending by name.
  std::vector<std::uint32_t> order;        // Indices of `parameters` as a forward pass meets them.
  std::vector<Alias> aliases;

  [[nodiscard]] const std::string& name_of(const Parameter& parameter) const { return (*names)[parameter.name]; }
  // Null if there is no such parameter.
  [[nodiscard]] const Parameter* find(std::string_view name) const;
  [[nodiscard]] const Parameter* find(std::uint32_t name) const;
  [[nodiscard]] std::uint64_t elements() const;
  // Bytes as the training side stores them, and as they are sent.
  [[nodiscard]] std::uint64_t storage_bytes() const;
  [[nodiscard]] std::uint64_t wire_bytes() const;
};

// 48 layers of 128 experts: 18,867 tensors, 61.1 GB in bf16. Source: the model's published configuration.
ModelDims qwen3_30b_a3b_dims();
// 28 dense layers, embedding tied to the head: 310 tensors and one alias.
ModelDims qwen3_0_6b_dims();
// 4 layers of 8 experts, small enough to be walked element by element.
ModelDims tiny_dims();

// The Qwen3 family under its published names: with experts if dims.experts > 0, else dense.
Result<ModelSpec> qwen3_moe_model(const ModelDims& dims, std::string title = "qwen3");
// "qwen3-30b-a3b", "qwen3-0.6b", "tiny", or "tiny_fp32_router", whose routers are fp32 on both sides and on the wire.
Result<ModelSpec> model_by_name(std::string_view title);

// Which part of a model a simulation holds as real numbers.
struct LiveOptions {
  bool all_names = false;  // Keep every name, not only three layers and two experts per owner.
  std::uint32_t experts_per_owner = 2;
  std::uint32_t min_elements = 64;  // Every live tensor has this many up to twice as many elements.
};

// A small model with the names of `full`: layers 0, 1 and the last, two experts per expert-parallel owner of both
// layouts, every kind of tensor. Rank, sharding class, dtypes and aliases stay; each cut extent divides by the shard
// counts of both layouts. Refuses layouts whose shard counts do not fit into twice min_elements.
Result<ModelSpec> live_model(const ModelSpec& full, const ParallelStrategy& train, const ParallelStrategy& infer,
                             const LiveOptions& options = {});

// The dimension along which a class is cut; 0 for classes that are not cut.
constexpr std::uint32_t cut_dimension(ShardClass shard) {
  return shard == ShardClass::kAttentionRow || shard == ShardClass::kMlpRow || shard == ShardClass::kExpertRow ? 1 : 0;
}

// Into how many pieces `strategy` cuts a parameter. Expert-parallel owners hold whole experts, so only the expert
// tensor size counts there; on the inference side ep splits tp (expert tensor size = tp / ep).
std::uint32_t training_shards(const Parameter& parameter, const ParallelStrategy& strategy);
std::uint32_t inference_shards(const Parameter& parameter, const ParallelStrategy& strategy);

}  // namespace areal::config
