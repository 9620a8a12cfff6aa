// Random inputs of the training arithmetic's tests, equal on every machine.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/rng.h"

namespace areal::algo {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline std::int64_t draw_between(Rng& rng, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(rng.draw_below(static_cast<std::uint64_t>(most - least + 1)));
}

// In steps of 1/64 within [-4, 4]: sums of a few thousand are exact in double.
inline float draw_value(Rng& rng) { return static_cast<float>(draw_between(rng, -256, 256)) / 64.0F; }

inline std::vector<float> draw_values(Rng& rng, std::size_t count) {
  std::vector<float> values;
  for (std::size_t at = 0; at < count; ++at) values.push_back(draw_value(rng));
  return values;
}

// Each entry is kept `kept` times in ten.
inline std::vector<std::uint8_t> draw_mask(Rng& rng, std::size_t count, std::uint64_t kept = 7) {
  std::vector<std::uint8_t> mask;
  for (std::size_t at = 0; at < count; ++at) mask.push_back(rng.draw_below(10) < kept ? 1 : 0);
  return mask;
}

// NaN and infinities where the mask drops, in turn.
inline void spoil(std::vector<float>& values, const std::vector<std::uint8_t>& mask) {
  constexpr float kBad[] = {kNan, kInfinity, -kInfinity};
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (mask[at] == 0) values[at] = kBad[at % 3];
  }
}

}  // namespace areal::algo
