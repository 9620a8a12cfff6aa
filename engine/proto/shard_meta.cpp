// Groups the reports of ranks into replicas.
#include "engine/proto/shard_meta.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::proto {
namespace {

ShardMeta place_shard(const ParameterCut& cut, const LocalShard& holder) {
  ShardMeta shard{holder.global_rank, cut.local, {}, cut.local.rank};
  if (cut.num_shards > 1) shard.offset[cut.cut] = holder.coordinate * cut.local.extent[cut.cut];
  return shard;
}

}  // namespace

Status MetaSet::add(const ParameterCut& cut, std::span<const LocalShard> holders) {
  if (cut.local.rank == 0) return Error{Errc::kInvalid, "a parameter without dimensions has no offset to be placed at"};
  if (cut.num_shards == 0 || cut.cut >= cut.local.rank) {
    return Error{Errc::kInvalid, "a parameter is cut into at least one piece, along one of its dimensions"};
  }
  if (std::uint64_t{cut.local.extent[cut.cut]} * cut.num_shards > 0xFFFFFFFF) {
    return Error{Errc::kInvalid,
                 fmt::format("{} pieces of {} are longer than 2^32 - 1", cut.num_shards, cut.local.extent[cut.cut])};
  }
  // Before memory is asked for by a number that nobody's shard stands for.
  if (!holders.empty() && holders.size() < cut.num_shards) {
    return Error{Errc::kInvalid,
                 fmt::format("{} ranks hold {} pieces of parameter {}", holders.size(), cut.num_shards, cut.name)};
  }
  std::vector<std::uint32_t> fill(holders.empty() ? 0 : cut.num_shards, 0);
  for (const LocalShard& holder : holders) {
    if (holder.coordinate >= cut.num_shards) {
      return Error{Errc::kInvalid,
                   fmt::format("rank {} claims piece {} of {}", holder.global_rank, holder.coordinate, cut.num_shards)};
    }
    ++fill[holder.coordinate];
  }
  const std::uint32_t copies = fill.empty() ? 0 : fill[0];
  if (!std::ranges::all_of(fill, [copies](std::uint32_t count) { return count == copies; })) {
    return Error{Errc::kInvalid, fmt::format("pieces of parameter {} are held by unequal numbers of ranks", cut.name)};
  }

  ParameterMeta parameter{cut.name, cut.local, cut.dtype, cut.sharding, cut.cut, cut.num_shards, 0, copies};
  parameter.shape.extent[cut.cut] *= cut.num_shards;
  parameter.first_replica = static_cast<std::uint32_t>(replicas.size());
  const auto first = static_cast<std::uint32_t>(shards.size());
  for (std::uint32_t i = 0; i < copies; ++i) replicas.push_back({first + i * cut.num_shards, cut.num_shards});
  shards.resize(shards.size() + std::size_t{copies} * cut.num_shards);
  std::ranges::fill(fill, 0U);
  for (const LocalShard& holder : holders) {
    const std::uint32_t replica = fill[holder.coordinate]++;
    shards[first + replica * cut.num_shards + holder.coordinate] = place_shard(cut, holder);
  }
  parameters.push_back(parameter);
  return Unit{};
}

Result<RankAxes> MetaSet::axes_of(std::uint32_t global_rank) const {
  if (global_rank >= ranks.size()) {
    return Error{Errc::kInvalid, fmt::format("unknown rank {}; the world has {}", global_rank, ranks.size())};
  }
  return ranks[global_rank];
}

Result<std::vector<ShardMeta>> MetaSet::shards_of_rank(std::uint32_t global_rank) const {
  if (Result<RankAxes> known = axes_of(global_rank); !known) return std::move(known).error();
  std::vector<ShardMeta> found;
  for (const ParameterMeta& parameter : parameters) {
    for (const ReplicaMeta& replica : replicas_of(parameter)) {
      for (const ShardMeta& shard : shards_of(replica)) {
        if (shard.global_rank == global_rank) found.push_back(shard);
      }
    }
  }
  return found;
}

Result<std::size_t> canonical_claim(std::span<const RankAxes> claims) {
  const auto found =
      std::ranges::find_if(claims, [](const RankAxes& axes) { return axes.dp_rank == 0 && axes.global_rank == 0; });
  if (found == claims.end()) return Error{Errc::kInvalid, "no process has data-parallel rank 0 and global rank 0"};
  return static_cast<std::size_t>(found - claims.begin());
}

}  // namespace areal::proto
