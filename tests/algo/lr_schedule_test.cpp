// Learning-rate schedules: warmup, ends, resumption.
#include "engine/algo/lr_schedule.h"

#include <gtest/gtest.h>

#include <limits>

namespace areal::algo {
namespace {

LrSettings cosine(LrForm form) {
  return {.base = 1, .shape = LrShape::kCosine, .warmup = 3, .total = 10, .min_ratio = 0.1, .form = form};
}

TEST(WarmupSteps, AbsoluteStepsWinOverAProportion) {
  EXPECT_EQ(warmup_steps(std::nullopt, 0.1, 100).value().steps, 10);
  EXPECT_EQ(warmup_steps(7, 0.5, 100).value().steps, 7);
  EXPECT_TRUE(warmup_steps(7, 0.5, 100).value().both_given);
  EXPECT_FALSE(warmup_steps(7, kDefaultWarmupProportion, 100).value().both_given);
  for (const std::int64_t steps : {0, 99, 100, 101}) EXPECT_EQ(warmup_steps(steps, 0.001, 100).value().steps, steps);
  EXPECT_FALSE(warmup_steps(-1, 0.001, 100));
  EXPECT_FALSE(warmup_steps(std::nullopt, -0.1, 100));
  EXPECT_FALSE(warmup_steps(std::nullopt, std::numeric_limits<double>::quiet_NaN(), 100));
  // Beyond 64 bits there is no whole part.
  for (const double share : {std::numeric_limits<double>::infinity(), 1e300}) {
    EXPECT_FALSE(warmup_steps(std::nullopt, share, 100)) << share;
  }
  EXPECT_FALSE(warmup_steps(std::nullopt, std::numeric_limits<double>::infinity(), 0));
  EXPECT_FALSE(warmup_steps(std::nullopt, 0.5, -100));
  EXPECT_EQ(warmup_steps(std::nullopt, 0.1, 0).value().steps, 0);
  EXPECT_EQ(total_train_steps(3, 25, 8), 9);
}

// Upstream's cosine rises again after its end; ours stays, as the absolute form does.
TEST(LrSchedule, StaysAtTheMinimumBeyondItsEnd) {
  LrSettings settings = cosine(LrForm::kMultiplier);
  const LrSchedule ours = LrSchedule::create(settings).value();
  settings.climbs_past_end = true;
  const LrSchedule upstream = LrSchedule::create(settings).value();
  const LrSchedule absolute = LrSchedule::create(cosine(LrForm::kAbsolute)).value();
  for (std::int64_t step = 0; step <= 10; ++step) EXPECT_EQ(ours.at(step), upstream.at(step));
  for (std::int64_t step = 10; step <= 30; ++step) {
    EXPECT_NEAR(ours.at(step), 0.1, 1e-15);
    EXPECT_NEAR(absolute.at(step), 0.1, 1e-15);
  }
  EXPECT_GT(upstream.at(12), 0.2) << "the wrong form is not told apart";
}

TEST(LrSchedule, TheFirstUpdateOfAWarmupRunsAtTheLowestRate) {
  EXPECT_EQ(LrSchedule::create(cosine(LrForm::kMultiplier)).value().at(0), 0.1);
  EXPECT_EQ(LrSchedule::create(cosine(LrForm::kAbsolute)).value().at(0), 0.0);
}

TEST(LrSchedule, ResumesWhereItWas) {
  for (const LrForm form : {LrForm::kMultiplier, LrForm::kAbsolute}) {
    for (const LrShape shape : {LrShape::kConstant, LrShape::kLinear, LrShape::kCosine}) {
      LrSettings settings = cosine(form);
      settings.shape = shape;
      LrSchedule whole = LrSchedule::create(settings).value();
      for (std::int64_t step = 0; step < 14; ++step, whole.advance()) {
        LrSchedule resumed = LrSchedule::create(settings).value();
        resumed.resume(whole.position());
        EXPECT_EQ(resumed.rate(), whole.rate());
        resumed.advance();
        EXPECT_EQ(resumed.rate(), whole.at(step + 1));
      }
    }
  }
}

// The rate that an update used is that before advance(); after it, it is the next one's.
TEST(LrSchedule, TheRateOfAnUpdateIsThatBeforeItAdvances) {
  LrSchedule schedule = LrSchedule::create(cosine(LrForm::kMultiplier)).value();
  const double used = schedule.rate();
  schedule.advance();
  EXPECT_NE(schedule.rate(), used);
}

TEST(LrSchedule, RefusesWhatHasNoRate) {
  for (const std::int64_t warmup : {10, 11}) {
    LrSettings settings = cosine(LrForm::kAbsolute);
    settings.warmup = warmup;
    EXPECT_FALSE(LrSchedule::create(settings)) << warmup;
    settings.form = LrForm::kMultiplier;
    EXPECT_TRUE(LrSchedule::create(settings)) << warmup;
  }
  LrSettings settings = cosine(LrForm::kAbsolute);
  settings.total = 0;
  settings.warmup = 0;
  EXPECT_FALSE(LrSchedule::create(settings));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double ratio : {-0.1, 1.5, kNan}) {
    settings = cosine(LrForm::kMultiplier);
    settings.min_ratio = ratio;
    EXPECT_FALSE(LrSchedule::create(settings)) << ratio;
    settings.shape = LrShape::kLinear;  // Whose multiplier ends at 0.
    EXPECT_TRUE(LrSchedule::create(settings)) << ratio;
    settings.form = LrForm::kAbsolute;
    EXPECT_FALSE(LrSchedule::create(settings)) << ratio;
  }
  for (const double base : {-1.0, kNan, std::numeric_limits<double>::infinity()}) {
    settings = cosine(LrForm::kMultiplier);
    settings.base = base;
    EXPECT_FALSE(LrSchedule::create(settings)) << base;
  }
  EXPECT_FALSE(lr_shape_from("polynomial"));
}

}  // namespace
}  // namespace areal::algo
