// The group in which training ranks meet during a step: its name, and the names of its meetings.
//
// One group a training epoch, NCCL, with all training ranks in the order of train_rank. Ids of the groups of a pair
// epoch are below 2^33 (member_groups.h).
#pragma once
#include "engine/base/ids.h"

namespace areal::proto {

constexpr GroupId training_group(Epoch training_epoch) { return {(std::uint64_t{2} << 32) | training_epoch}; }
constexpr bool is_training_group(GroupId group) { return group.value >> 32 == 2; }

// The reduction of the norm in the step that makes `version`.
constexpr std::uint64_t norm_tag(Version version) { return (version << 8) | 1; }

// Whether a rank takes part in the reduction of a step, given how many shards it was assigned. The product's answer is
// that every rank does, also one without shards: the others wait for all (INV-6).
using ReducePolicy = bool (*)(std::uint32_t shards);
constexpr bool always_reduces(std::uint32_t /*shards*/) { return true; }

}  // namespace areal::proto
