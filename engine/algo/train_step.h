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

// How far a FrequencyControl has counted: what a checkpoint keeps.
struct FrequencyState {
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  std::int64_t last_epochs = 0;  // When it was last due by each counter.
  std::int64_t last_steps = 0;
  Duration last_time;
};

// Counts steps, and the epochs that they end. Each of the three counters starts again when it is itself due, not when
// another is. Time comes from the caller, who agrees on it with the other ranks.
class FrequencyControl {
 public:
  // kInvalid: a frequency that is not above 0.
  static Result<FrequencyControl> create(const Frequency& frequency);

  // Before the first check(): whether it is due now.
  [[nodiscard]] bool due_before_training() const { return frequency_.before_training && state_.steps == 0; }
  // After a step. `elapsed`: since the start of the run; never falls.
  bool check(bool ends_epoch, Duration elapsed = {});

  [[nodiscard]] const FrequencyState& state() const { return state_; }
  void resume(const FrequencyState& state) { state_ = state; }

 private:
  explicit FrequencyControl(const Frequency& frequency) : frequency_(frequency) {}

  Frequency frequency_;
  FrequencyState state_;
};

}  // namespace areal::algo
