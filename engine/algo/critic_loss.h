// The critic's clipped loss and its gradient.
//
// a = distance(value, target), b = distance(old value moved by at most eps towards value, target); per element max(a,
// b); the mean over the mask. The distance is half the square, or Huber's with delta 10. An empty mask gives 0, where
// the reference divides 0 by 0. Values in units of return; fp32, the sum in double. Source: PPO2 of OpenAI baselines.
// Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/policy_tokens.h"

namespace areal::algo {

enum class ValueDistance : std::uint8_t { kHalfSquare, kHuber };

std::optional<ValueDistance> value_distance_from(std::string_view name);  // "mse", "huber"

struct CriticSettings {
  double clip = 0.5;  // eps
  ValueDistance distance = ValueDistance::kHalfSquare;
};

// Spans of one length; `mask` none: every element counts.
struct ValueElements {
  std::span<const float> values;
  std::span<const float> old_values;
  std::span<const float> targets;
  std::optional<Mask> mask;
};

struct CriticLoss {
  float loss = 0;
  std::vector<float> gradient;           // d loss / d values
  std::vector<float> element_loss;       // Statistics, of every element; filled only where asked for.
  std::vector<std::uint8_t> is_clipped;  // Where the mask keeps and the clipped distance is the greater.
};

// Replaces `into`. kInvalid: lengths differ; a clip that is not at least 0.
Status critic_loss(const CriticSettings& settings, const ValueElements& elements, Statistics statistics,
                   CriticLoss& into);

}  // namespace areal::algo
