#include "engine/algo/overlong_penalty.h"

namespace areal::algo {

float overlong_penalty(const OverlongPenalty& penalty, std::int64_t length) {
  const std::int64_t beyond = length - (penalty.longest - penalty.tokens);
  const float share = static_cast<float>(-beyond) / static_cast<float>(penalty.tokens);
  const float value = share * static_cast<float>(penalty.factor);
  return value > 0 ? 0 : value;  // A NaN stays.
}

}  // namespace areal::algo
