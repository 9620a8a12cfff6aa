#include "engine/delta/inversion.h"

#include "engine/base/check.h"

namespace areal::delta {
namespace {

InversionScalars scalars_of(const AdamWSettings& settings, double bc1, double bc2) {
  return {.step_size = static_cast<float>(settings.learning_rate / bc1),
          .bc2 = static_cast<float>(bc2),
          .epsilon = static_cast<float>(settings.epsilon),
          .decay = static_cast<float>(1.0 - settings.learning_rate * settings.weight_decay)};
}

ProvenStep step_of(const AdamWSettings& settings, std::uint64_t t, double bc1, double bc2) {
  return {.learning_rate = settings.learning_rate,
          .weight_decay = settings.weight_decay,
          .epsilon = settings.epsilon,
          .bc1 = bc1,
          .bc2 = bc2,
          .t = t};
}

}  // namespace

InversionScalars inversion_scalars(const AdamWSettings& settings, std::uint64_t t, bool bias_correction) {
  AREAL_CHECK(t > 0);
  if (!bias_correction) return scalars_of(settings, 1.0, 1.0);
  return AdamWPowers(settings, t).inversion(settings);
}

InversionScalars AdamWPowers::inversion(const AdamWSettings& settings) const {
  AREAL_CHECK(steps_ > 0);
  return scalars_of(settings, 1.0 - beta1_power_, 1.0 - beta2_power_);
}

ProvenStep proven_step(const AdamWSettings& settings, std::uint64_t t, bool bias_correction) {
  AREAL_CHECK(t > 0);
  if (!bias_correction) return step_of(settings, t, 1.0, 1.0);
  return AdamWPowers(settings, t).proven_step(settings);
}

ProvenStep AdamWPowers::proven_step(const AdamWSettings& settings) const {
  AREAL_CHECK(steps_ > 0);
  return step_of(settings, steps_, 1.0 - beta1_power_, 1.0 - beta2_power_);
}

}  // namespace areal::delta
