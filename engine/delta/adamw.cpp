#include "engine/delta/adamw.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace areal::delta {
namespace {

struct NamedDecimal {
  std::string_view name;
  std::string_view text;
  double below;  // The first value that is too large.
  double* value;
};

constexpr double kNoLimit = 1e300;

Status read_decimal(const NamedDecimal& decimal) {
  const char* end = decimal.text.data() + decimal.text.size();
  const auto [rest, problem] = std::from_chars(decimal.text.data(), end, *decimal.value);
  // A NaN fits no comparison, so it is refused as well.
  const bool fits = *decimal.value >= 0.0 && *decimal.value < decimal.below;
  if (problem == std::errc{} && rest == end && fits) return Unit{};
  return Error{Errc::kInvalid, fmt::format("{} is '{}', should be a decimal of at least 0{}", decimal.name,
                                           decimal.text, decimal.below == 1.0 ? " and below 1" : "")};
}

AdamWScalars scalars_of(const AdamWSettings& settings, double beta1_power, double beta2_power) {
  AdamWScalars scalars;
  scalars.beta1 = static_cast<float>(settings.beta1);
  scalars.one_minus_beta1 = static_cast<float>(1.0 - settings.beta1);
  scalars.beta2 = static_cast<float>(settings.beta2);
  scalars.one_minus_beta2 = static_cast<float>(1.0 - settings.beta2);
  scalars.step_size = static_cast<float>(settings.learning_rate / (1.0 - beta1_power));
  scalars.root_bc2 = static_cast<float>(std::sqrt(1.0 - beta2_power));
  scalars.epsilon = static_cast<float>(settings.epsilon);
  scalars.decay = static_cast<float>(1.0 - settings.learning_rate * settings.weight_decay);
  return scalars;
}

}  // namespace

Result<AdamWSettings> parse_adamw(const AdamWText& text) {
  AdamWSettings settings;
  AREAL_TRY(read_decimal({"learning_rate", text.learning_rate, kNoLimit, &settings.learning_rate}));
  AREAL_TRY(read_decimal({"weight_decay", text.weight_decay, kNoLimit, &settings.weight_decay}));
  AREAL_TRY(read_decimal({"beta1", text.beta1, 1.0, &settings.beta1}));
  AREAL_TRY(read_decimal({"beta2", text.beta2, 1.0, &settings.beta2}));
  AREAL_TRY(read_decimal({"epsilon", text.epsilon, kNoLimit, &settings.epsilon}));
  if (!(settings.learning_rate * settings.weight_decay < 1.0)) {
    return Error{Errc::kInvalid, "learning_rate * weight_decay should be below 1"};
  }
  return settings;
}

AdamWScalars adamw_scalars(const AdamWSettings& settings, std::uint64_t t) {
  AREAL_CHECK(t > 0);
  return AdamWPowers(settings, t - 1).next(settings);
}

AdamWScalars AdamWPowers::next(const AdamWSettings& settings) {
  ++steps_;
  beta1_power_ *= settings.beta1;
  beta2_power_ *= settings.beta2;
  return scalars_of(settings, beta1_power_, beta2_power_);
}

AdamWElement adamw_element(const AdamWScalars& scalars, const AdamWElement& before, float gradient) {
  AdamWElement after;
  after.exp_avg = std::fma(scalars.one_minus_beta1, gradient, scalars.beta1 * before.exp_avg);
  after.exp_avg_sq = scalars.beta2 * before.exp_avg_sq + (scalars.one_minus_beta2 * gradient) * gradient;
  const float denominator = std::sqrt(after.exp_avg_sq) / scalars.root_bc2 + scalars.epsilon;
  after.weight = before.weight * scalars.decay - (scalars.step_size * after.exp_avg) / denominator;
  return after;
}

void adamw_step(const AdamWScalars& scalars, const AdamWSpans& spans) {
  const std::size_t count = spans.weights.size();
  AREAL_CHECK(spans.exp_avg.size() == count);
  AREAL_CHECK(spans.exp_avg_sq.size() == count);
  AREAL_CHECK(spans.gradients.size() == count);
  for (std::size_t i = 0; i < count; ++i) {
    const AdamWElement after =
        adamw_element(scalars, {spans.weights[i], spans.exp_avg[i], spans.exp_avg_sq[i]}, spans.gradients[i]);
    spans.weights[i] = after.weight;
    spans.exp_avg[i] = after.exp_avg;
    spans.exp_avg_sq[i] = after.exp_avg_sq;
  }
}

}  // namespace areal::delta
