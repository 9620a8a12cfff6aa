#include "engine/proto/shard_book.h"

#include <algorithm>

namespace areal::proto {

ShardBook::ShardBook(const MetaSet& metas) : metas_(&metas), names_(metas.names.get()) {
  start_.push_back(0);
  for (const ParameterMeta& parameter : metas.parameters) {
    add_name(parameter.name);
    for (const ReplicaMeta& replica : metas.replicas_of(parameter)) {
      for (std::uint32_t shard = replica.first_shard; shard < replica.first_shard + replica.shard_count; ++shard) {
        entries_.push_back({metas.shards[shard].global_rank, shard});
      }
    }
    std::ranges::stable_sort(entries_.begin() + start_.back(), entries_.end(), {}, &Entry::global_rank);
    start_.push_back(static_cast<std::uint32_t>(entries_.size()));
  }
}

ShardBook::ShardBook(const GridSet& grids) : grids_(&grids), names_(grids.names.get()) {
  for (const ParameterGrid& grid : grids.parameters) add_name(grid.name);
}

void ShardBook::add_name(std::uint32_t name) {
  if (name >= by_name_.size()) by_name_.resize(name + 1, 0);
  name_indices_.push_back(name);
  by_name_[name] = static_cast<std::uint32_t>(name_indices_.size());
}

std::optional<ShardBook::Held> ShardBook::find(std::uint32_t parameter, std::uint32_t global_rank) const {
  if (grids_ != nullptr) {
    const ParameterGrid& grid = grids_->parameters[parameter];
    const std::optional<GridPlace> place = grid.place_of(global_rank);
    if (!place) return std::nullopt;
    return Held{grid.shard(*place), false};
  }
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
