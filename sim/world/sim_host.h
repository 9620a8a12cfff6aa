// One machine: which ports are taken. A value; not thread-safe.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/base/fields.h"
#include "engine/base/ids.h"

namespace areal::sim {

// Below the ephemeral range, so that no outgoing connection takes a leased port. Source: the reference's guard.
inline constexpr std::uint16_t kFirstPort = 10000;
inline constexpr std::uint16_t kLastPort = 32767;

struct SimHost {
  std::vector<std::uint16_t> leased;  // Sorted.
  AREAL_FIELDS(leased)

  [[nodiscard]] bool is_leased(std::uint16_t port) const { return std::ranges::binary_search(leased, port); }
  void lease(std::uint16_t port) { leased.insert(std::ranges::lower_bound(leased, port), port); }
  void release(std::uint16_t port) { std::erase(leased, port); }
  // The first free port at or after `from`, going round; 0 if none is free.
  [[nodiscard]] std::uint16_t free_from(std::uint16_t from) const {
    constexpr std::uint32_t kCount = kLastPort - kFirstPort + 1;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const auto port = static_cast<std::uint16_t>(kFirstPort + (from - kFirstPort + i) % kCount);
      if (!is_leased(port)) return port;
    }
    return 0;
  }
};

}  // namespace areal::sim
