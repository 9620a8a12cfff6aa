#include "engine/proto/shard_book.h"

#include <algorithm>

namespace areal::proto {

ShardBook::ShardBook(const MetaSet& metas) : metas_(&metas), by_name_(metas.names ? metas.names->size() : 0, 0) {
  start_.push_back(0);
  for (std::uint32_t i = 0; i < metas.parameters.size(); ++i) {
    const ParameterMeta& parameter = metas.parameters[i];
    by_name_[parameter.name] = i + 1;
    for (const ReplicaMeta& replica : metas.replicas_of(parameter)) {
      for (std::uint32_t shard = replica.first_shard; shard < replica.first_shard + replica.shard_count; ++shard) {
        entries_.push_back({metas.shards[shard].global_rank, shard});
      }
    }
    std::ranges::stable_sort(entries_.begin() + start_.back(), entries_.end(), {}, &Entry::global_rank);
    start_.push_back(static_cast<std::uint32_t>(entries_.size()));
  }
}

std::optional<ShardBook::Held> ShardBook::find(std::uint32_t parameter, std::uint32_t global_rank) const {
  const auto end = entries_.begin() + start_[parameter + 1];
  const auto place =
      std::ranges::lower_bound(entries_.begin() + start_[parameter], end, global_rank, {}, &Entry::global_rank);
  if (place == end || place->global_rank != global_rank) return std::nullopt;
  return Held{metas_->shards[place->shard], place + 1 != end && (place + 1)->global_rank == global_rank};
}

std::optional<std::uint32_t> ShardBook::parameter_of(std::uint32_t name) const {
  if (name >= by_name_.size() || by_name_[name] == 0) return std::nullopt;
  return by_name_[name] - 1;
}

}  // namespace areal::proto
