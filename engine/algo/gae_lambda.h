// The decay λ of generalized advantage estimation, one for each sequence.
//
// A constant; or a function of the number L of time steps (trained tokens, or turns):
//   length-adaptive     1 - 1 / (alpha L), at least 0; 0 without a step (VAPO, arXiv:2504.05118)
//   relative position   q^(1 / (L - 1)) for L >= 2; 1 for L = 1; 0 without a step: the first step of
//                       each sequence keeps the share q of a reward at its end
// Pure functions; λ is float32. Source: spec 4.4.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

enum class LambdaKind : std::uint8_t { kConstant, kLengthAdaptive, kRelativePosition };

struct LambdaRule {
  LambdaKind kind = LambdaKind::kConstant;
  double value = 1;  // The constant, alpha or q.
};

// A decimal number is a constant; "length_adaptive" and "relative_position" are the functions, with their `value`. So
// are the reference's names vapo_length_adaptive_gae and relative_position_gae_lambda, with or without a dotted path.
// kInvalid: anything else.
Result<LambdaRule> lambda_rule_from(std::string_view text, double value);

// λ of each of `lengths`. kInvalid: alpha not above 0, q not in (0, 1]. A NaN for alpha passes and gives NaN, as does a
// constant that is not finite: whoever uses λ calls check_finite.
Result<std::vector<float>> lambdas(const LambdaRule& rule, std::span<const std::int64_t> lengths);

// kInvalid: one of them is not finite.
Status check_finite(std::span<const float> lambda);

}  // namespace areal::algo
