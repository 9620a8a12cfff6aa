// The overlap of two boxes of one tensor.
#pragma once
#include <optional>

#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// A shard of more elements is refused: bytes and elements of a plan's operations then add up below 2^64.
inline constexpr std::uint64_t kMostShardElements = std::uint64_t{1} << 48;

// Refuses more dimensions than tensors have here, and more than kMostShardElements.
Status check_shape(const Shape& shape);

// Refuses an offset of no entries, one whose entries are not as many as the shape's, what check_shape() refuses, and
// an end beyond 2^32 - 1.
Status check_shard(const ShardMeta& shard);

// The common box of a sender's and a receiver's shard, relative to each; nothing if they do not meet.
// REQUIRES: check_shard() accepted both, and both have the same number of dimensions.
std::optional<Region> overlap_of(const ShardMeta& sender, const ShardMeta& receiver);

}  // namespace areal::proto
