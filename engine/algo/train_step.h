// Where in a run a training step lies, and when something that is done every so often is due.
//
// Pure values. Source: the step information and the frequency control of the training loop.
#pragma once
#include <cstdint>
#include <optional>

#include "engine/base/result.h"
#include "engine/base/time.h"

namespace areal::algo {

struct TrainStep {
  std::int64_t epoch = 0;
  std::int64_t epoch_step = 0;   // Within the epoch.
  std::int64_t global_step = 0;  // A run that recovers starts at it, with this version of the weights.
  bool operator==(const TrainStep&) const = default;

  // REQUIRES: steps_per_epoch > 0.
  [[nodiscard]] TrainStep next(std::int64_t steps_per_epoch) const;
};

// Due every so many epochs, steps or so much time, whichever comes first; with none of them never.
struct Frequency {
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> steps;
  std::optional<Duration> time;
  bool before_training = false;  // Once more, before the first step.
};

// Counts steps, and the epochs that they end. Each of the three counters starts again when it is itself due, not when
// another is. Time comes from the caller, who agrees on it with the other ranks.
class FrequencyControl {
 public:
  // kInvalid: a frequency that is not above 0.
  static Result<FrequencyControl> create(const Frequency& frequency);

  // Before the first check(): whether it is due now.
  [[nodiscard]] bool due_before_training() const { return frequency_.before_training && steps_ == 0; }
  // After a step. `elapsed`: since the start of the run; never falls.
  bool check(bool ends_epoch, Duration elapsed = {});

 private:
  explicit FrequencyControl(const Frequency& frequency) : frequency_(frequency) {}

  Frequency frequency_;
  std::int64_t epochs_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t last_epochs_ = 0;
  std::int64_t last_steps_ = 0;
  Duration last_time_;
};

}  // namespace areal::algo
