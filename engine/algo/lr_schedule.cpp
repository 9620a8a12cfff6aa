#include "engine/algo/lr_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/check.h"

namespace areal::algo {

Result<WarmupSteps> warmup_steps(std::optional<std::int64_t> steps, double proportion, std::int64_t total) {
  if (steps) {
    if (*steps < 0) return Error{Errc::kInvalid, fmt::format("warmup_steps must be non-negative, got {}", *steps)};
    return WarmupSteps{*steps, proportion != kDefaultWarmupProportion};
  }
  if (!(proportion >= 0)) {
    return Error{Errc::kInvalid, fmt::format("warmup_steps_proportion must be non-negative, got {}", proportion)};
  }
  const double share = proportion * static_cast<double>(total);
  if (!(share >= 0 && share < 0x1p63)) {
    return Error{Errc::kInvalid, fmt::format("{} of {} steps is no number of warmup steps", proportion, total)};
  }
  return WarmupSteps{static_cast<std::int64_t>(share), false};
}

std::int64_t total_train_steps(std::int64_t epochs, std::int64_t dataset_size, std::int64_t batch) {
  AREAL_CHECK(batch > 0);
  return epochs * (dataset_size / batch);
}

std::optional<LrShape> lr_shape_from(std::string_view name) {
  if (name == "constant") return LrShape::kConstant;
  if (name == "linear") return LrShape::kLinear;
  if (name == "cosine") return LrShape::kCosine;
  return std::nullopt;
}

Result<LrSchedule> LrSchedule::create(const LrSettings& settings) {
  if (settings.warmup < 0) return Error{Errc::kInvalid, fmt::format("{} warmup steps", settings.warmup)};
  if (settings.form == LrForm::kAbsolute) {
    if (settings.total <= 0) {
      return Error{Errc::kInvalid, fmt::format("total_train_steps must be positive, got {}", settings.total)};
    }
    if (settings.warmup >= settings.total) {
      return Error{Errc::kInvalid,
                   fmt::format("{} warmup steps must be less than {} steps", settings.warmup, settings.total)};
    }
  }
  if (!std::isfinite(settings.base) || settings.base < 0) {
    return Error{Errc::kInvalid, fmt::format("a learning rate of {}", settings.base)};
  }
  const bool reads_ratio =
      settings.shape == LrShape::kCosine || (settings.shape == LrShape::kLinear && settings.form == LrForm::kAbsolute);
  if (reads_ratio && !(settings.min_ratio >= 0 && settings.min_ratio <= 1)) {
    return Error{Errc::kInvalid, fmt::format("min_lr_ratio {} is not in [0, 1]", settings.min_ratio)};
  }
  return LrSchedule(settings);
}

double LrSchedule::at(std::int64_t step) const {
  AREAL_CHECK(step >= 0);
  return settings_.form == LrForm::kMultiplier ? settings_.base * multiplier(step) : absolute(step);
}

void LrSchedule::resume(std::int64_t position) {
  AREAL_CHECK(position >= 0);
  position_ = position;
}

double LrSchedule::multiplier(std::int64_t step) const {
  const auto& [base, shape, warmup, total, min_ratio, form, climbs] = settings_;
  const auto span = static_cast<double>(std::max<std::int64_t>(1, total - warmup));
  if (step < warmup) {
    const double risen = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, warmup));
    return shape == LrShape::kCosine ? min_ratio + (1 - min_ratio) * risen : risen;
  }
  switch (shape) {
    case LrShape::kConstant:
      return 1;
    case LrShape::kLinear:
      return std::max(0.0, static_cast<double>(total - step) / span);
    case LrShape::kCosine: {
      const double passed = static_cast<double>(step - warmup) / span;
      const double angle = std::numbers::pi * (climbs ? passed : std::min(passed, 1.0));
      return std::max(min_ratio, std::cos(angle) * ((1 - min_ratio) * 0.5) + (1 + min_ratio) * 0.5);
    }
  }
  AREAL_CHECK(false);
  return 0;
}

double LrSchedule::absolute(std::int64_t step) const {
  const double lowest = settings_.min_ratio * settings_.base;
  if (settings_.warmup > 0 && step <= settings_.warmup) {
    return settings_.base * static_cast<double>(step) / static_cast<double>(settings_.warmup);
  }
  if (settings_.shape == LrShape::kConstant) return settings_.base;
  if (step > settings_.total) return lowest;
  const double passed =
      static_cast<double>(step - settings_.warmup) / static_cast<double>(settings_.total - settings_.warmup);
  const double share =
      settings_.shape == LrShape::kLinear ? 1 - passed : 0.5 * (std::cos(std::numbers::pi * passed) + 1);
  return lowest + share * (settings_.base - lowest);
}

}  // namespace areal::algo
