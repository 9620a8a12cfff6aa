// Names the effect of another process as the cause of an event, where every process numbers its own trace.
//
// In one recording of one process, a cause is the number of an earlier event of it, or this name for the effect of
// another process; merging several recordings into one order turns names into numbers. Pure functions.
#pragma once
#include <cstdint>

#include "engine/base/ids.h"

namespace areal::node {

struct RemoteCause {
  NodeId node{};                // Below 2^14.
  Incarnation incarnation = 0;  // Below 2^13.
  std::uint64_t seq = 0;        // In that process's own trace; below 2^36.
};

inline constexpr std::uint64_t kRemoteBit = std::uint64_t{1} << 63;

// REQUIRES: the bounds above.
constexpr std::uint64_t remote_cause(const RemoteCause& cause) {
  return kRemoteBit | (cause.node.value << 49) | (std::uint64_t{cause.incarnation} << 36) | cause.seq;
}

constexpr bool is_remote(std::uint64_t cause) { return (cause & kRemoteBit) != 0; }

// REQUIRES: is_remote(cause).
constexpr RemoteCause remote_cause_of(std::uint64_t cause) {
  return {NodeId{(cause >> 49) & 0x3FFF}, static_cast<Incarnation>((cause >> 36) & 0x1FFF),
          cause & ((std::uint64_t{1} << 36) - 1)};
}

}  // namespace areal::node
