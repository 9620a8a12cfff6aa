// The overlap of two boxes of one tensor.
#pragma once
#include <optional>

#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// Refuses an offset of no entries, one whose entries are not as many as the shape's, and a shard that ends beyond
// 2^32 - 1 in some dimension: 32 bits hold all sums of offsets and extents of what is accepted.
Status check_shard(const ShardMeta& shard);

// The common box of a sender's and a receiver's shard, relative to each; nothing if they do not meet.
// REQUIRES: check_shard() accepted both, and both have the same number of dimensions.
std::optional<Region> overlap_of(const ShardMeta& sender, const ShardMeta& receiver);

}  // namespace areal::proto
