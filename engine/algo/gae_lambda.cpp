#include "engine/algo/gae_lambda.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace areal::algo {

namespace {

double length_adaptive(double alpha, std::int64_t length) {
  if (length <= 0) return 0;
  const double lambda = 1 - 1 / (alpha * static_cast<double>(length));
  return lambda < 0 ? 0 : lambda;
}

double relative_position(double q, std::int64_t length) {
  if (length <= 0) return 0;
  return length == 1 ? 1 : std::pow(q, 1 / static_cast<double>(length - 1));
}

Status check(const LambdaRule& rule) {
  if (rule.kind == LambdaKind::kLengthAdaptive && rule.value <= 0) {
    return Error{Errc::kInvalid, fmt::format("alpha must be a positive number, got {}", rule.value)};
  }
  const bool is_share = rule.value > 0 && rule.value <= 1;
  if (rule.kind == LambdaKind::kRelativePosition && !is_share) {
    return Error{Errc::kInvalid, fmt::format("q must be a finite number in (0, 1], got {}", rule.value)};
  }
  return Unit{};
}

}  // namespace

Result<LambdaRule> lambda_rule_from(std::string_view text, double value) {
  double constant = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), constant);
  if (problem == std::errc{} && end == text.data() + text.size()) return LambdaRule{LambdaKind::kConstant, constant};
  const std::string_view name = text.substr(text.rfind('.') + 1);
  if (name == "length_adaptive" || name == "vapo_length_adaptive_gae") {
    return LambdaRule{LambdaKind::kLengthAdaptive, value};
  }
  if (name == "relative_position" || name == "relative_position_gae_lambda") {
    return LambdaRule{LambdaKind::kRelativePosition, value};
  }
  return Error{Errc::kInvalid,
               fmt::format("gae_lambda must be a number, length_adaptive or relative_position, got '{}'", text)};
}

Result<std::vector<float>> lambdas(const LambdaRule& rule, std::span<const std::int64_t> lengths) {
  AREAL_TRY(check(rule));
  std::vector<float> lambda;
  lambda.reserve(lengths.size());
  for (const std::int64_t length : lengths) {
    switch (rule.kind) {
      case LambdaKind::kConstant:
        lambda.push_back(static_cast<float>(rule.value));
        break;
      case LambdaKind::kLengthAdaptive:
        lambda.push_back(static_cast<float>(length_adaptive(rule.value, length)));
        break;
      case LambdaKind::kRelativePosition:
        lambda.push_back(static_cast<float>(relative_position(rule.value, length)));
        break;
    }
  }
  return lambda;
}

Status check_finite(std::span<const float> lambda) {
  for (const float value : lambda) {
    if (!std::isfinite(value)) return Error{Errc::kInvalid, fmt::format("gae_lambda must be finite, got {}", value)};
  }
  return Unit{};
}

}  // namespace areal::algo
