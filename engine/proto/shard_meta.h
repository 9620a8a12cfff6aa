// What every rank holds of every parameter: shards, the replicas they form, and the ranks' places in the layout.
//
// A replica is a list of shards that together cover a parameter once. Data-parallel and context-parallel copies are
// separate replicas, so that a plan can spread load over them. All lists are flat, so a set for 18,867 parameters on 8
// ranks is three arrays. Values; safe to share between threads once built.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/model.h"

namespace areal::proto {

using config::kMaxTensorRank;
using config::NameTable;
using config::Shape;
using Offsets = std::array<std::uint32_t, kMaxTensorRank>;

enum class Sharding : std::uint8_t { kNone, kTp, kDpTp, kEp, kEpTp };
constexpr std::array<std::string_view, 5> enum_names(Sharding /*tag*/) {
  return {"none", "tp", "dp_tp", "ep", "ep_tp"};
}

// Where one rank stands in its own world.
struct RankAxes {
  std::uint32_t global_rank = 0;
  std::uint32_t tp_rank = 0;
  std::uint32_t attn_tp_rank = 0;
  std::uint32_t pp_rank = 0;
  std::uint32_t dp_rank = 0;
  std::uint32_t cp_rank = 0;
  std::uint32_t ep_rank = 0;
  std::uint32_t ep_tp_rank = 0;
};

struct ShardMeta {
  std::uint32_t global_rank = 0;
  Shape shape;
  Offsets offset{};              // Of the shard's first element in the whole parameter.
  std::uint8_t offset_rank = 0;  // Entries of `offset` that were given; must equal shape.rank.
};

struct ReplicaMeta {
  std::uint32_t first_shard = 0;
  std::uint32_t shard_count = 0;
};

struct ParameterMeta {
  std::uint32_t name = 0;  // Index into MetaSet::names.
  Shape shape;             // Global.
  DType dtype = DType::kBf16;
  Sharding sharding = Sharding::kNone;
  std::uint8_t cut = 0;  // The dimension that is cut.
  std::uint32_t num_shards = 1;
  std::uint32_t first_replica = 0;
  std::uint32_t replica_count = 0;
};

// One rank's report of its part: which piece (`coordinate`) of how many it holds.
struct LocalShard {
  std::uint32_t global_rank = 0;
  std::uint32_t coordinate = 0;
};

// What is equal for all ranks that hold a parameter.
struct ParameterCut {
  std::uint32_t name = 0;
  Shape local;  // Extents of every shard.
  DType dtype = DType::kBf16;
  Sharding sharding = Sharding::kNone;
  std::uint8_t cut = 0;
  std::uint32_t num_shards = 1;
};

struct MetaSet {
  std::shared_ptr<const NameTable> names;
  std::vector<ParameterMeta> parameters;
  std::vector<ReplicaMeta> replicas;
  std::vector<ShardMeta> shards;
  std::vector<RankAxes> ranks;  // By global rank; empty if nobody said.

  // Adds a parameter from the reports of its holders. Holders are put into buckets by coordinate, in the order given;
  // the i-th holders of all buckets form replica i, so all buckets must be equally full. A parameter in one piece
  // makes each holder a replica of its own. Offset along the cut: coordinate x local extent. Refuses a parameter that
  // would be longer than 2^32 - 1 along the cut.
  Status add(const ParameterCut& cut, std::span<const LocalShard> holders);

  [[nodiscard]] const std::string& name_of(const ParameterMeta& parameter) const { return (*names)[parameter.name]; }
  [[nodiscard]] std::span<const ReplicaMeta> replicas_of(const ParameterMeta& parameter) const {
    return std::span(replicas).subspan(parameter.first_replica, parameter.replica_count);
  }
  [[nodiscard]] std::span<const ShardMeta> shards_of(const ReplicaMeta& replica) const {
    return std::span(shards).subspan(replica.first_shard, replica.shard_count);
  }
  // Where a rank stands; an error for a rank that is not part of this set.
  [[nodiscard]] Result<RankAxes> axes_of(std::uint32_t global_rank) const;
  // The shards that one rank holds, in order of parameters; an error for an unknown rank.
  [[nodiscard]] Result<std::vector<ShardMeta>> shards_of_rank(std::uint32_t global_rank) const;
};

// Of several processes that claim rank 0, the one that counts: data-parallel rank 0 and global rank 0. Nothing else may
// be asked of `claims` than that one such is there.
Result<std::size_t> canonical_claim(std::span<const RankAxes> claims);

}  // namespace areal::proto
