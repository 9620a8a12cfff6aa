// The overlap of two boxes of one tensor.
#pragma once
#include <optional>

#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// Refuses an offset of no entries and one whose entries are not as many as the shape's.
Status check_shard(const ShardMeta& shard);

// The common box of a sender's and a receiver's shard, relative to each; nothing if they do not meet.
// REQUIRES: check_shard() accepted both, and both have the same number of dimensions.
std::optional<Region> overlap_of(const ShardMeta& sender, const ShardMeta& receiver);

}  // namespace areal::proto
