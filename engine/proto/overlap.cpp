// Box arithmetic, dimension by dimension.
#include "engine/proto/overlap.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::proto {

Status check_shape(const Shape& shape) {
  if (shape.rank > kMaxTensorRank) {
    return Error{Errc::kInvalid, fmt::format("{} dimensions, at most {}", shape.rank, kMaxTensorRank)};
  }
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < shape.rank; ++i) {
    if (shape.extent[i] == 0) return Unit{};
  }
  for (std::size_t i = 0; i < shape.rank; ++i) {
    if (shape.extent[i] > kMostShardElements / elements) {
      return Error{Errc::kInvalid, fmt::format("more than {} elements in one shard", kMostShardElements)};
    }
    elements *= shape.extent[i];
  }
  return Unit{};
}

Status check_shard(const ShardMeta& shard) {
  if (shard.offset_rank == 0) return Error{Errc::kInvalid, "Shard has empty global_offset"};
  if (shard.offset_rank != shard.shape.rank) {
    return Error{Errc::kInvalid,
                 fmt::format("Dimension mismatch for shard in replica: global_offset has {} dims, shape has {} dims",
                             shard.offset_rank, shard.shape.rank)};
  }
  AREAL_TRY(check_shape(shard.shape));
  for (std::size_t i = 0; i < shard.shape.rank; ++i) {
    if (std::uint64_t{shard.offset[i]} + shard.shape.extent[i] <= 0xFFFFFFFF) continue;
    return Error{Errc::kInvalid,
                 fmt::format("a shard of {} from {} on ends beyond 2^32 - 1", shard.shape.extent[i], shard.offset[i])};
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
