// Names and layouts that differ between training, checkpoint and inference: fused projections and fused experts.
//
// Checkpoint (HF) names are the common ground. All functions are pure and answer with views of the tensor they are
// given; a tensor that does not divide as it must is refused. Sources: the fused layouts of Megatron core and of the
// inference engine as the transfer contract states them.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/proto/tensor_view.h"

namespace areal::proto {

using Views = std::vector<TensorView>;

// Geometry of an inference rank's fused tensors. Expert ids are global: local + ep_rank * local count.
struct FusedConfig {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;        // 0: as many as heads.
  std::uint32_t routed_experts = 0;  // An id from here on is a shared expert; 0: all are routed.
  std::uint32_t ep_rank = 0;
};

// The checkpoint tensors inside one tensor of an inference rank:
//   qkv_proj [R, ...]: q = R * H / (H + 2 KV) rows, then k and v of R * KV / (H + 2 KV) each; both must be exact
//   gate_up_proj [2f, ...]: gate, then up; two equal halves
//   experts.w13_weight [E, 2f, h]: gate and up of each expert; experts.w2_weight [E, h, f]: down of each
// Any other tensor is itself.
Result<Views> unfuse_engine_tensor(std::string_view name, const Shape& shape, const FusedConfig& config);

// Geometry of a Megatron model.
struct MegatronConfig {
  std::uint32_t heads = 0;
  std::uint32_t query_groups = 0;
  std::uint32_t hidden = 0;
  std::uint32_t kv_channels = 0;  // Width of a head; 0: hidden / heads.
};

// The checkpoint tensors inside one Megatron core tensor (gathered over tensor ranks). linear_qkv interleaves by query
// group: the group's query heads, its key head, its value head. linear_fc1 is gate, then up. `with_experts` knows
// routed and shared experts and the router too. Unknown names are refused.
Result<Views> megatron_to_checkpoint(std::string_view name, const Shape& shape, const MegatronConfig& config,
                                     bool with_experts);

}  // namespace areal::proto
