// Id<Tag> is a number given by us; no address, name or hash ever identifies a thing.
#pragma once
#include <compare>
#include <cstdint>

namespace areal {

template <class Tag>
struct Id {
  std::uint64_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;                // One process host; 0 is "no node". Stays equal over restarts.
using HostId = Id<struct HostTag>;                // One machine.
using SlotId = Id<struct SlotTag>;                // One protocol inside a node: its position in the node.
using TimerId = Id<struct TimerTag>;              // Chosen by the protocol that arms it.
using GroupId = Id<struct GroupTag>;              // One collective group; a new one for every epoch.
using BatchId = Id<struct BatchTag>;              // One posted batch of group operations; chosen by the poster.
using BufferId = Id<struct BufferTag>;            // One device buffer; chosen by the reserver.
using OpId = Id<struct OpTag>;                    // One compute, store or process operation; chosen by the caller.
using RequestId = Id<struct RequestTag>;          // One request of one caller; 0 is "not a request".
using SampleId = Id<struct SampleTag>;            // One rollout sample.
using SampleGroupId = Id<struct SampleGroupTag>;  // One prompt with its samples.
using ShardId = Id<struct ShardTag>;              // One stored tensor shard.
using TrainBatchId = Id<struct TrainBatchTag>;    // One training batch.
using EngineId = Id<struct EngineTag>;            // One inference engine, counted from 0 in declared order.

// How often a process was started: 1 is the first start, 0 is "any".
using Incarnation = std::uint32_t;
// A version of the weights: 0 is the model as loaded; a published one is never reused with other bytes.
using Version = std::uint64_t;
// A try to move one version, counted from 1.
using Attempt = std::uint32_t;
// A connection of a pair, counted from 1.
using Epoch = std::uint32_t;

}  // namespace areal
