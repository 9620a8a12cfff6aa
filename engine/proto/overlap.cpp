// Box arithmetic, dimension by dimension.
#include "engine/proto/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace areal::proto {

Status check_shard(const ShardMeta& shard) {
  if (shard.offset_rank == 0) return Error{Errc::kInvalid, "Shard has empty global_offset"};
  if (shard.offset_rank != shard.shape.rank) {
    return Error{Errc::kInvalid,
                 fmt::format("Dimension mismatch for shard in replica: global_offset has {} dims, shape has {} dims",
                             shard.offset_rank, shard.shape.rank)};
  }
  for (std::size_t i = 0; i < shard.shape.rank; ++i) {
    if (std::uint64_t{shard.offset[i]} + shard.shape.extent[i] <= std::numeric_limits<std::uint32_t>::max()) continue;
    return Error{Errc::kInvalid, fmt::format("a shard of {} from {} on in dimension {}: it ends beyond 2**32 - 1",
                                             shard.shape.extent[i], shard.offset[i], i)};
  }
  return Unit{};
}

std::optional<Region> overlap_of(const ShardMeta& sender, const ShardMeta& receiver) {
  Region region;
  region.extent.rank = receiver.shape.rank;
  for (std::size_t i = 0; i < receiver.shape.rank; ++i) {
    const std::uint32_t start = std::max(sender.offset[i], receiver.offset[i]);
    const std::uint64_t end = std::min(std::uint64_t{sender.offset[i]} + sender.shape.extent[i],
                                       std::uint64_t{receiver.offset[i]} + receiver.shape.extent[i]);
    if (start >= end) return std::nullopt;
    region.send_offset[i] = start - sender.offset[i];
    region.recv_offset[i] = start - receiver.offset[i];
    region.extent.extent[i] = static_cast<std::uint32_t>(end - start);
  }
  return region;
}

}  // namespace areal::proto
