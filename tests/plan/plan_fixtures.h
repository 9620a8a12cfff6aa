// Metas and plans that the tests of transfer plans build by hand.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "engine/proto/sharding.h"
#include "engine/proto/transfer_plan.h"

namespace areal::proto {

struct ShardText {
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> offset;
  std::vector<std::uint32_t> shape;
};
using ReplicaText = std::vector<ShardText>;

struct ParameterText {
  std::string name;
  std::vector<ReplicaText> replicas;
  DType dtype = DType::kF32;
};

inline MetaSet make_metas(const std::vector<ParameterText>& parameters) {
  MetaSet metas;
  NameTable names;
  for (const ParameterText& parameter : parameters) {
    ParameterMeta meta;
    meta.name = static_cast<std::uint32_t>(names.size());
    meta.dtype = parameter.dtype;
    meta.first_replica = static_cast<std::uint32_t>(metas.replicas.size());
    meta.replica_count = static_cast<std::uint32_t>(parameter.replicas.size());
    names.push_back(parameter.name);
    for (const ReplicaText& replica : parameter.replicas) {
      metas.replicas.push_back(
          {static_cast<std::uint32_t>(metas.shards.size()), static_cast<std::uint32_t>(replica.size())});
      for (const ShardText& text : replica) {
        ShardMeta shard;
        shard.global_rank = text.rank;
        shard.shape.rank = static_cast<std::uint8_t>(text.shape.size());
        shard.offset_rank = static_cast<std::uint8_t>(text.offset.size());
        std::ranges::copy(text.shape, shard.shape.extent.begin());
        std::ranges::copy(text.offset, shard.offset.begin());
        metas.shards.push_back(shard);
      }
    }
    metas.parameters.push_back(meta);
  }
  metas.names = std::make_shared<const NameTable>(std::move(names));
  return metas;
}

inline ParameterText whole(std::string name) { return {std::move(name), {{{0, {0, 0}, {2, 2}}}}}; }

inline Result<std::shared_ptr<const TransferPlan>> plan_of(const MetaSet& train, const MetaSet& infer,
                                                           const PlanOptions& options) {
  return build_transfer_plan(train, infer, options, RenamePolicy{});
}

// How often each element of a shard is written by the plan. Row-major in the shard's own box.
inline std::vector<int> writes_into(const TransferPlan& plan, std::uint32_t recv, std::uint32_t tensor,
                                    const Shape& shard) {
  std::vector<int> writes(shard.elements(), 0);
  const RankPlan mine = plan.rank(recv);
  for (std::size_t peer = 0; peer < mine.peer_count(); ++peer) {
    for (const PlanOp& op : mine.ops(peer)) {
      if (op.tensor != tensor) continue;
      const Region& region = plan.regions[op.region];
      const std::uint32_t width = shard.rank > 1 ? shard.extent[1] : 1;
      const std::uint32_t columns = shard.rank > 1 ? region.extent.extent[1] : 1;
      const std::uint32_t first_column = shard.rank > 1 ? region.recv_offset[1] : 0;
      for (std::uint32_t row = 0; row < region.extent.extent[0]; ++row) {
        for (std::uint32_t column = 0; column < columns; ++column) {
          ++writes.at((region.recv_offset[0] + row) * width + first_column + column);
        }
      }
    }
  }
  return writes;
}

// Whether every element of every shard of every engine is written exactly once. Rank 1 and 2 only.
inline bool covers_once(const TransferPlan& plan, const MetaSet& infer) {
  for (std::uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const auto parameter = std::ranges::find(infer.parameters, plan.tensors[tensor].infer_name, &ParameterMeta::name);
    for (std::uint32_t engine = 0; engine < plan.world.engines; ++engine) {
      for (const ReplicaMeta& replica : infer.replicas_of(*parameter)) {
        for (const ShardMeta& shard : infer.shards_of(replica)) {
          const std::uint32_t recv = plan.world.infer_rank(shard.global_rank, engine);
          const std::vector<int> writes = writes_into(plan, recv, tensor, shard.shape);
          if (!std::ranges::all_of(writes, [](int count) { return count == 1; })) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace areal::proto
