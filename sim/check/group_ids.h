// What a group is for, by its number: the two of a pair's epoch, the trainers' own of that epoch, and the training
// world's.
//
// A pair has payload group 2*epoch and control group 2*epoch+1. Beside them its trainers have (1<<32)|epoch<<16|index:
// index 0 is all of them, for votes; the others are sets of data-parallel replicas. The training world of a training
// epoch has (2<<32)|epoch. No group number is ever used twice.
#pragma once
#include <cstdint>

#include "engine/base/ids.h"

namespace areal::sim {

constexpr GroupId payload_group_of(Epoch epoch) { return {std::uint64_t{epoch} * 2}; }
constexpr GroupId control_group_of(Epoch epoch) { return {std::uint64_t{epoch} * 2 + 1}; }
constexpr GroupId vote_group_of(Epoch epoch) { return {(std::uint64_t{1} << 32) | (std::uint64_t{epoch} << 16)}; }
// Data-parallel replicas of some parameters, of any epoch.
constexpr bool is_replica_group(GroupId group) { return group.value >> 32 == 1 && (group.value & 0xFFFF) != 0; }
constexpr bool is_training_world(GroupId group) { return group.value >> 32 == 2; }

}  // namespace areal::sim
