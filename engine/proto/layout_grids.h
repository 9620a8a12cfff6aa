// Grids of whole training and inference layouts, from a model and its parallel sizes; sharding.h has the same as lists.
//
// Pure functions.
#pragma once
#include "engine/config/layout.h"
#include "engine/config/model.h"
#include "engine/proto/parameter_grid.h"

namespace areal::proto {

// Megatron: see training_metas(). Refuses an extent that does not divide by its shard count.
Result<GridSet> training_grids(const config::ModelSpec& model, const config::ParallelStrategy& strategy);

// One engine: see inference_metas(). Refuses more than 65,535 ranks.
Result<GridSet> inference_grids(const config::ModelSpec& model, const config::ParallelStrategy& strategy);

// Fully sharded data parallelism, alone, beside tensor parallelism, or in copies (hybrid sharding). Every parameter is
// first cut over tensor ranks and what a tensor rank has of it along its rows over `shards` ranks, both by the ceil
// rule of torch.chunk: the reference's offsets round down, which is wrong where rows do not divide (GAP-20). rank =
// tensor rank + tp * (shard + shards * copy). Experts are cut as everything else is.
struct FsdpSizes {
  std::uint32_t shards = 1;
  std::uint32_t tp = 1;
  std::uint32_t copies = 1;
};
Result<GridSet> fsdp_grids(const config::ModelSpec& model, const FsdpSizes& sizes);

}  // namespace areal::proto
