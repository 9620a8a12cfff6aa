#include "engine/algo/train_step.h"

#include <fmt/format.h>

#include "engine/base/check.h"

namespace areal::algo {

namespace {

// Whether `now` is at least `frequency` past `last`, which then moves on.
bool fires(const std::optional<std::int64_t>& frequency, std::int64_t now, std::int64_t& last) {
  if (!frequency || now - last < *frequency) return false;
  last = now;
  return true;
}

}  // namespace

TrainStep TrainStep::next(std::int64_t steps_per_epoch) const {
  AREAL_CHECK(steps_per_epoch > 0);
  const bool ends_epoch = epoch_step + 1 >= steps_per_epoch;
  return {ends_epoch ? epoch + 1 : epoch, ends_epoch ? 0 : epoch_step + 1, global_step + 1};
}

Result<FrequencyControl> FrequencyControl::create(const Frequency& frequency) {
  const bool positive = frequency.epochs.value_or(1) > 0 && frequency.steps.value_or(1) > 0 &&
                        frequency.time.value_or(Duration{1}).ns > 0;
  if (!positive) return Error{Errc::kInvalid, "a frequency must be above 0; leave it out for never"};
  return FrequencyControl(frequency);
}

bool FrequencyControl::check(bool ends_epoch, Duration elapsed) {
  ++state_.steps;
  if (ends_epoch) ++state_.epochs;
  const bool by_epochs = fires(frequency_.epochs, state_.epochs, state_.last_epochs);
  const bool by_steps = fires(frequency_.steps, state_.steps, state_.last_steps);
  const std::optional<std::int64_t> nanoseconds = frequency_.time ? std::optional(frequency_.time->ns) : std::nullopt;
  const bool by_time = fires(nanoseconds, elapsed.ns, state_.last_time.ns);
  return by_epochs || by_steps || by_time;
}

}  // namespace areal::algo
