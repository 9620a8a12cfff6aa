// Rejection sampling: its settings, and what holds for every choice of them.
#include "engine/algo/rejection.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/algo/random_values.h"
#include "tests/algo/tokens.h"

namespace areal::algo {
namespace {

RejectionSettings masking(double upper, std::optional<double> lower = std::nullopt) {
  RejectionSettings settings;
  settings.upper = upper;
  settings.lower = lower;
  return settings;
}

std::vector<RejectionSettings> all_settings() {
  std::vector<RejectionSettings> all;
  for (const auto level : {RejectionLevel::kToken, RejectionLevel::kSequence}) {
    for (const auto action : {RejectionAction::kMask, RejectionAction::kClamp}) {
      for (const auto metric :
           {RejectionMetric::kRatio, RejectionMetric::kK1, RejectionMetric::kK2, RejectionMetric::kK3}) {
        for (const auto aggregate : {RejectionAggregate::kMean, RejectionAggregate::kSum, RejectionAggregate::kMax}) {
          const bool is_ratio = metric == RejectionMetric::kRatio;
          const auto settings = checked({level, action, metric, aggregate, is_ratio ? 1.2 : 0.1, std::nullopt});
          if (settings) all.push_back(*settings);
        }
      }
    }
  }
  return all;
}

TEST(Rejection, HoldsItsInvariantsForEverySetting) {
  const Batch batch = random_batch({5, 1, 17, 8}, 21);
  const Rows rows = batch.rows();
  int filtering = 0;
  for (const RejectionSettings& settings : all_settings()) {
    const auto got = apply_rejection(settings, batch.proximal, batch.old, batch.mask, &rows);
    ASSERT_TRUE(got);
    const bool clamps = settings.action == RejectionAction::kClamp;
    if (clamps) {
      EXPECT_EQ(got->kept, batch.mask);
    }
    const bool is_bounded = settings.level == RejectionLevel::kToken && settings.metric == RejectionMetric::kRatio;
    for (std::size_t at = 0; at < batch.tokens(); ++at) {
      EXPECT_LE(got->kept[at], batch.mask[at]);
      EXPECT_EQ(got->weights[at] == 0, got->kept[at] == 0);
      if (is_bounded) {
        EXPECT_LE(got->weights[at], 1.2F);
      }
    }
    const double dropped = static_cast<double>(count(batch.mask) - count(got->kept));
    if (!clamps) {
      EXPECT_EQ(got->filtered_fraction, dropped / static_cast<double>(count(batch.mask)));
    }
    if (got->filtered_fraction > 0 && got->filtered_fraction < 1) ++filtering;
  }
  EXPECT_GT(filtering, 10);
}

TEST(Rejection, PaddedAndPackedAgree) {
  const Batch batch = random_batch({5, 1, 17, 8}, 22);
  const Rows rows = batch.rows();
  const Batch wide = padded(batch, 20);
  const Rows wide_rows = Rows::padded(4, 20);
  for (const RejectionSettings& settings : all_settings()) {
    const auto packed = apply_rejection(settings, batch.proximal, batch.old, batch.mask, &rows);
    const auto got = apply_rejection(settings, wide.proximal, wide.old, wide.mask, &wide_rows);
    ASSERT_TRUE(packed && got);
    EXPECT_EQ(got->filtered_fraction, packed->filtered_fraction);
    for (std::size_t row = 0; row < 4; ++row) {
      const auto wanted = rows.of(std::span(packed->weights), row);
      const auto of_row = wide_rows.of(std::span(got->weights), row);
      for (std::size_t at = 0; at < of_row.size(); ++at) EXPECT_EQ(of_row[at], at < wanted.size() ? wanted[at] : 0.0F);
    }
  }
}

// proximal equal to old: nothing is filtered, every weight is 1.
TEST(Rejection, IsInertWhereBothPoliciesAreOne) {
  const Batch batch = random_batch({6, 6}, 23);
  const Rows rows = batch.rows();
  for (const RejectionSettings& settings : all_settings()) {
    const auto got = apply_rejection(settings, batch.old, batch.old, batch.mask, &rows);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->kept, batch.mask);
    EXPECT_EQ(got->filtered_fraction, 0.0);
    for (std::size_t at = 0; at < batch.tokens(); ++at) EXPECT_EQ(got->weights[at], batch.mask[at] != 0 ? 1.0F : 0.0F);
  }
}

TEST(Rejection, BoundsAreInside) {
  const std::vector<float> proximal = {std::log(2.0F), 0.0F};
  const std::vector<float> old = {0.0F, 0.0F};
  const std::vector<std::uint8_t> mask = {1, 1};
  const auto at_bound = apply_rejection(masking(2.0), proximal, old, mask, nullptr);
  ASSERT_TRUE(at_bound);
  EXPECT_EQ(at_bound->kept, mask);
  const auto below = apply_rejection(masking(1.999), proximal, old, mask, nullptr);
  ASSERT_TRUE(below);
  EXPECT_EQ(below->kept, (std::vector<std::uint8_t>{0, 1}));
}

// A log-ratio that is no number counts as 0 in the ratio, as in the reference: kept, with weight 1. Metrics that are
// not made a number drop it.
TEST(Rejection, KeepsARatioThatIsNoNumberAndDropsSuchAMetric) {
  const std::vector<float> proximal = {-1.0F, -kInfinity};
  const std::vector<float> old = {-kInfinity, -kInfinity};
  const std::vector<std::uint8_t> mask = {1, 1};
  const auto ratio = apply_rejection(masking(5.0), proximal, old, mask, nullptr);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->kept, mask);
  EXPECT_EQ(ratio->weights, (std::vector<float>{1.0F, 1.0F}));
  RejectionSettings k2 = masking(5.0);
  k2.metric = RejectionMetric::kK2;
  EXPECT_EQ(apply_rejection(k2, proximal, old, mask, nullptr).value().kept, (std::vector<std::uint8_t>{0, 0}));
}

TEST(Rejection, EmptyMasksAndBatchesGiveNumbers) {
  const std::vector<float> values(3, 5.0F);
  const std::vector<float> zeros(3, 0.0F);
  const std::vector<std::uint8_t> mask(3, 0);
  const Rows rows = Rows::padded(1, 3);
  const Rows none = Rows::padded(0, 3);
  for (const RejectionSettings& settings : all_settings()) {
    const auto got = apply_rejection(settings, values, zeros, mask, &rows);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->kept, mask);
    EXPECT_EQ(got->weights, zeros);
    EXPECT_EQ(got->filtered_fraction, 0.0);
    EXPECT_EQ(apply_rejection(settings, {}, {}, {}, &none).value().filtered_fraction, 0.0);
  }
}

TEST(Rejection, RefusesLengthsThatDifferAndSequencesWithoutRows) {
  const std::vector<float> two(2, 0.0F);
  const std::vector<float> three(3, 0.0F);
  const std::vector<std::uint8_t> mask(2, 1);
  const Rows rows = Rows::padded(1, 3);
  EXPECT_FALSE(apply_rejection(masking(2.0), two, three, mask, nullptr));
  EXPECT_FALSE(apply_rejection(masking(2.0), three, three, mask, nullptr));
  EXPECT_FALSE(apply_rejection(masking(2.0), two, two, mask, &rows));
  RejectionSettings sequences = masking(2.0);
  sequences.level = RejectionLevel::kSequence;
  EXPECT_FALSE(apply_rejection(sequences, two, two, mask, nullptr));
}

TEST(RejectionSettings, RefusesWhatCannotBeMeant) {
  EXPECT_FALSE(checked(masking(1.0)));
  EXPECT_FALSE(checked(masking(2.0, 3.0)));
  EXPECT_FALSE(checked(masking(2.0, 0.0)));
  EXPECT_FALSE(checked(masking(2.0, -0.1)));
  // Nothing lies within a NaN, whatever the metric: every token would be dropped.
  for (const auto metric :
       {RejectionMetric::kRatio, RejectionMetric::kK1, RejectionMetric::kK2, RejectionMetric::kK3}) {
    RejectionSettings settings = masking(std::nan(""));
    settings.metric = metric;
    EXPECT_FALSE(checked(settings));
    settings = masking(5, std::nan(""));
    settings.metric = metric;
    EXPECT_FALSE(checked(settings));
  }
  RejectionSettings k2 = masking(0.0);
  k2.metric = RejectionMetric::kK2;
  EXPECT_FALSE(checked(k2));
  k2.metric = RejectionMetric::kK3;
  EXPECT_FALSE(checked(k2));
  k2.metric = RejectionMetric::kK1;
  EXPECT_TRUE(checked(k2));
  k2.metric = RejectionMetric::kBinaryKl;
  k2.upper = 1;
  EXPECT_FALSE(checked(k2));
  RejectionSettings clamped = masking(2.0);
  clamped.action = RejectionAction::kClamp;
  EXPECT_EQ(checked(clamped).value().lower, 0.0);
  const auto again = checked(checked(clamped).value());
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_EQ(again->lower, 0.0);
  clamped.lower = -0.1;
  EXPECT_FALSE(checked(clamped));
  clamped.lower.reset();
  clamped.metric = RejectionMetric::kK1;
  EXPECT_FALSE(checked(clamped));
  EXPECT_EQ(checked(masking(2.0)).value().lower, std::nullopt);
}

TEST(RejectionSettings, WarnsOfAnAggregateThatTokensIgnore) {
  RejectionSettings settings = masking(2.0);
  EXPECT_TRUE(warning_of(settings).empty());
  settings.aggregate = RejectionAggregate::kMax;
  EXPECT_FALSE(warning_of(settings).empty());
  settings.level = RejectionLevel::kSequence;
  EXPECT_TRUE(warning_of(settings).empty());
}

}  // namespace
}  // namespace areal::algo
