// Learning rates by step: warmup, then constant, linear or cosine, in the two forms that training engines use.
//
// With W warmup steps of T in all, minimum ratio r, s = how often the schedule advanced (0 for the first update):
//   kMultiplier, times the base rate:
//     constant  s < W: s / max(1, W); then 1                                         (r does not count)
//     linear    s < W: s / max(1, W); then max(0, (T - s) / max(1, T - W))           (r does not count)
//     cosine    s < W: r + (1 - r) s / max(1, W); then max(r, (1 + r) / 2 + (1 - r) / 2 * cos(pi p)),
//               p = (s - W) / max(1, T - W)
//   kAbsolute: s <= W, W > 0: base * s / W; then constant, linear or cosine between r * base and base over T - W, and
//     r * base beyond T, except for constant.
// kMultiplier's cosine climbs again beyond T, as p passes 1; here p ends at 1 unless `climbs_past_end` asks for the
// original. float64, no unit but the base rate's. Values; not safe to share between threads while they advance.
// Source: the schedulers of Hugging Face transformers (linear, constant), of AReaL (cosine) and of Megatron-Core.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/result.h"

namespace areal::algo {

inline constexpr double kDefaultWarmupProportion = 0.001;

struct WarmupSteps {
  std::int64_t steps = 0;
  bool both_given = false;  // The proportion was given too, and does not count.
};

// `steps` if given, else the whole part of proportion * total. More than `total` is no error here.
// kInvalid: what counts is below 0, or the product is no number of steps.
Result<WarmupSteps> warmup_steps(std::optional<std::int64_t> steps, double proportion, std::int64_t total);

// epochs * whole batches of the data set. REQUIRES: batch > 0.
std::int64_t total_train_steps(std::int64_t epochs, std::int64_t dataset_size, std::int64_t batch);

enum class LrShape : std::uint8_t { kConstant, kLinear, kCosine };
std::optional<LrShape> lr_shape_from(std::string_view name);  // "constant", "linear", "cosine"

enum class LrForm : std::uint8_t { kMultiplier, kAbsolute };

struct LrSettings {
  double base = 0.001;
  LrShape shape = LrShape::kConstant;
  std::int64_t warmup = 0;
  std::int64_t total = 0;
  double min_ratio = 0;
  LrForm form = LrForm::kMultiplier;
  bool climbs_past_end = false;
};

// The position in the schedule is all that a checkpoint has to keep: the rate follows from it and the settings.
class LrSchedule {
 public:
  // kInvalid: kAbsolute with total <= 0 or warmup >= total, so that this is known before an optimizer is made; a
  // minimum ratio outside [0, 1] where it counts; warmup below 0; a base rate that is not finite and at least 0.
  static Result<LrSchedule> create(const LrSettings& settings);

  [[nodiscard]] double at(std::int64_t step) const;  // REQUIRES: step >= 0.

  // Of the update to come. Recorded before advance(), it is the rate that the update used.
  [[nodiscard]] double rate() const { return at(position_); }
  [[nodiscard]] std::int64_t position() const { return position_; }
  void advance() { ++position_; }
  void resume(std::int64_t position);  // REQUIRES: position >= 0.

 private:
  explicit LrSchedule(const LrSettings& settings) : settings_(settings) {}
  [[nodiscard]] double multiplier(std::int64_t step) const;
  [[nodiscard]] double absolute(std::int64_t step) const;

  LrSettings settings_;
  std::int64_t position_ = 0;
};

}  // namespace areal::algo
