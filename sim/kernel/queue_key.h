// The place of an event in the order of events: its time, then the number given at posting.
#pragma once
#include <cstdint>
#include <limits>

#include "engine/base/time.h"

namespace areal::sim {

struct QueueKey {
  Instant at;
  std::uint64_t number = 0;

  bool operator<(const QueueKey& other) const {
    return at.ns != other.at.ns ? at.ns < other.at.ns : number < other.number;
  }
};

inline constexpr std::int64_t kLeastTime = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kGreatestTime = std::numeric_limits<std::int64_t>::max();

// How far `at` lies behind `start`, exact for all times. REQUIRES: start <= at.
inline std::uint64_t offset_from(std::int64_t start, std::int64_t at) {
  return static_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(start);
}

}  // namespace areal::sim
