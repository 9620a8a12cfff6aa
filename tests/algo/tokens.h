// Random batches of tokens, and the losses that every property is tried on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/algo/policy_tokens.h"
#include "engine/algo/rejection_settings.h"

namespace areal::algo {

// Owns what PolicyTokens points to.
struct Batch {
  std::vector<float> logprobs;
  std::vector<float> proximal;
  std::vector<float> old;
  std::vector<float> advantages;
  std::vector<std::uint8_t> mask;
  std::vector<std::size_t> lengths;

  [[nodiscard]] std::size_t tokens() const { return mask.size(); }
  [[nodiscard]] Rows rows() const;
  [[nodiscard]] PolicyTokens view(const Rows& rows) const { return {logprobs, proximal, old, advantages, mask, &rows}; }
};

// Rows of the given lengths; about three tokens of four are kept.
Batch random_batch(const std::vector<std::size_t>& lengths, std::uint64_t seed);

// The chosen rows, in that order.
Batch rows_of(const Batch& batch, const std::vector<std::size_t>& chosen);

// Every row filled up to one width with masked tokens that hold NaN.
Batch padded(const Batch& batch, std::size_t width);

std::span<const float> row_of(const Batch& batch, std::span<const float> values, std::size_t row);

// PPO, PPO with dual clip, PPO with rejection (mask, clamp, sequences), CISPO with and without, and SAPO; tokens and
// sequences.
struct NamedLoss {
  std::string name;
  PolicyLoss (*run)(const PolicyTokens&);
};
const std::vector<NamedLoss>& all_losses();

}  // namespace areal::algo
