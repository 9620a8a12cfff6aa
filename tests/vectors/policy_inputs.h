// What vectors of policy losses have in common: their inputs, their settings, and how gradients are compared.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/algo/policy_tokens.h"
#include "engine/algo/rejection_settings.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {

// Topic files spell tensors with shapes, examples nest lists; both give flat values and rows.
std::vector<float> flat_floats(const Json& values);
std::vector<std::uint8_t> flat_mask(const Json& values);

// The rows of [B, L] tensors, or those that cu_seqlens names; none for packed ones without.
std::optional<algo::Rows> rows_of(const Json& tensor, const Json& inputs);

// Owns what PolicyTokens points to. Absent fields are empty; an absent `proximal` or `old` of the loss is the caller's.
struct PolicyInputs {
  std::vector<float> logprobs;
  std::vector<float> proximal;
  std::vector<float> old;
  std::vector<float> advantages;
  std::vector<std::uint8_t> mask;
  std::optional<algo::Rows> rows;

  [[nodiscard]] algo::PolicyTokens tokens() const {
    return {logprobs, proximal, old, advantages, mask, rows ? &*rows : nullptr};
  }
};

PolicyInputs policy_inputs_of(const Json& inputs);

// Unknown names throw std::invalid_argument.
algo::RejectionSettings rejection_settings_of(const Json& config);
std::optional<algo::RejectionSettings> checked_rejection_of(const Json& config);

// Where the mask keeps, as any values. Elsewhere ours must be 0; the reference may have leaked a NaN there, which is
// what masking by selection is told apart by.
std::string gradient_miss(const Json& wanted, const std::vector<float>& got, const std::vector<std::uint8_t>& mask,
                          Tolerance tolerance);

std::string flags_miss(std::string_view field, const Json& wanted, const std::vector<std::uint8_t>& got);

}  // namespace areal::vectors
