// How long bytes take at a rate, in whole numbers.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/base/time.h"

namespace areal::sim {

// Rates below 1 MB/s count as 1 MB/s. REQUIRES: bytes < 10^16.
constexpr Duration time_of_bytes(std::uint64_t bytes, std::uint64_t bytes_per_second) {
  const std::uint64_t per_microsecond = std::max<std::uint64_t>(bytes_per_second / 1'000'000, 1);
  return {static_cast<std::int64_t>(bytes * 1'000 / per_microsecond)};
}

}  // namespace areal::sim
