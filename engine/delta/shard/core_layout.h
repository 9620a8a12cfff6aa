// What optimizer shards hold: a training framework's own tensors, cut over tensor ranks and then among the copies.
//
// A core tensor is one that the framework keeps, fused or not: linear_qkv, linear_fc1 with gate and up, an expert's
// half. Each tensor rank has a piece of it; a piece is made of slices of checkpoint tensors (views, so that nothing is
// gathered to take it apart). The data-parallel copies of a piece do not all keep optimizer state: each owns a flat
// range of it, and together they own all of it once. FSDP is the same with ranges of whole rows, which are then also
// all that a rank holds.
//
// Values; immutable once built.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/model.h"
#include "engine/proto/layout_grids.h"
#include "engine/proto/tensor_view.h"

namespace areal::delta {

// One checkpoint tensor's slice inside a piece.
struct CorePart {
  std::uint32_t parameter = 0;  // Index into the model's parameters.
  proto::TensorView view;       // Of the piece; its shape is the slice's. Equal on all tensor ranks.
};

struct FlatRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] constexpr std::uint64_t size() const { return end - begin; }
  constexpr bool operator==(const FlatRange&) const = default;
};

struct CoreTensor {
  std::string name;
  proto::Shape piece;  // Of one tensor rank.
  std::uint8_t cut = 0;
  // Who holds it: `row_pieces` are owners. Its shape and cut say nothing here.
  proto::ParameterGrid ranks;
  // Owners have ceil(elements / owners / unit) units each, the last ones fewer or none. Unless `cuts` says where each
  // begins; then it has one entry more than owners, from 0 to the piece's elements.
  std::uint64_t unit = 1;
  std::vector<std::uint64_t> cuts;
  std::vector<CorePart> parts;  // Disjoint; together they are the piece.

  [[nodiscard]] std::uint32_t owners() const { return ranks.row_pieces; }
  // REQUIRES: owner < owners().
  [[nodiscard]] FlatRange owned(std::uint32_t owner) const;
  // Who owns an element of the piece. REQUIRES: element < piece.elements().
  [[nodiscard]] std::uint32_t owner_of(std::uint64_t element) const;
  // Where the slice of tensor piece `piece_index` begins in its checkpoint tensor.
  [[nodiscard]] proto::Offsets slice_offset(const CorePart& part, std::uint32_t piece_index) const;

 private:
  [[nodiscard]] std::uint64_t chunk() const;
};

struct CoreLayout {
  config::ModelSpec model;
  std::vector<CoreTensor> tensors;
  std::uint32_t world = 0;
};

// Megatron core with a distributed optimizer: the copies (data and context parallel) of a piece own equal flat ranges
// of it. Refuses what training_grids() refuses, and more tensor ranks than query groups (kUnsupported).
Result<CoreLayout> megatron_core_layout(const config::ModelSpec& model, const config::ParallelStrategy& strategy);

// Fully sharded: core tensors are checkpoint tensors. Refuses tensor ranks that do not divide a cut extent.
Result<CoreLayout> fsdp_core_layout(const config::ModelSpec& model, const proto::FsdpSizes& sizes);

}  // namespace areal::delta
