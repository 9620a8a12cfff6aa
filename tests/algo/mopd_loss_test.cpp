// The loss of multi-teacher distillation, its targets and its composition.
#include "engine/algo/mopd_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/algo/behaviour_logprobs.h"
#include "engine/algo/mopd_target.h"
#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

constexpr double kCap = 5.0;
using Kept = std::vector<std::uint8_t>;

struct Batch {
  std::vector<float> now = {-1.0F, -0.5F, -2.0F, -0.25F};
  std::vector<float> behaviour = {-1.2F, -0.5F, -1.0F, -3.0F};
  std::vector<float> logp_sum = {-1.3F, -2.0F, -3.1F, -0.5F};
  std::vector<float> weight_sum = {2.0F, 2.0F, 1.0F, 0.5F};
  Kept mask = {1, 1, 1, 1};
  std::optional<Kept> counted = std::nullopt;

  [[nodiscard]] Result<MopdLoss> loss(double cap = kCap) const {
    return mopd_loss<float>(
        {now, behaviour, logp_sum, weight_sum, mask, counted ? std::optional<Mask>(*counted) : std::nullopt}, cap);
  }
};

TEST(MopdLoss, WhatIsMaskedIsNeverRead) {
  const Batch clean{.mask = {1, 0, 1, 0}};
  for (const float bad : {kNan, kInfinity, -kInfinity, 1000.0F}) {
    Batch dirty = clean;
    for (auto* field : {&dirty.now, &dirty.behaviour, &dirty.logp_sum, &dirty.weight_sum})
      (*field)[1] = (*field)[3] = bad;
    const MopdLoss got = dirty.loss().value();
    EXPECT_EQ(got.loss, clean.loss().value().loss);
    EXPECT_EQ(got.gradient, clean.loss().value().gradient);
    EXPECT_EQ(got.importance_weight[1], 0.0);
    EXPECT_EQ(got.reverse_kl[3], 0.0);
  }
}

TEST(MopdLoss, AKeptValueThatIsNotFiniteIsRefused) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (int field = 0; field < 4; ++field) {
      Batch batch;
      std::vector<float>* fields[] = {&batch.now, &batch.behaviour, &batch.logp_sum, &batch.weight_sum};
      (*fields[field])[2] = bad;
      EXPECT_FALSE(batch.loss()) << bad << " in field " << field;
    }
  }
}

TEST(MopdLoss, RefusesShapesThatWouldHaveToBroadcastAndCapsThatAreNone) {
  Batch one_weight;
  one_weight.weight_sum = {2.0F};
  EXPECT_FALSE(one_weight.loss());
  Batch one_counted{.counted = Kept{1}};
  EXPECT_FALSE(one_counted.loss());
  for (const double cap :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(Batch{}.loss(cap)) << cap;
  }
}

TEST(MopdLoss, AnEmptyMaskAndAnEmptyBatchAreZero) {
  const MopdLoss masked = Batch{.mask = {0, 0, 0, 0}}.loss().value();
  EXPECT_EQ(masked.loss, 0.0);
  EXPECT_EQ(masked.gradient, std::vector<double>(4, 0.0));
  const MopdLoss nothing = mopd_loss<float>({{}, {}, {}, {}, {}, std::nullopt}, kCap).value();
  EXPECT_EQ(nothing.loss, 0.0);
  EXPECT_TRUE(nothing.gradient.empty());
}

TEST(MopdLoss, TheRatioNeverPassesItsCap) {
  for (const double cap : {0.5, 1.0, 5.0, 7.3}) {
    Batch batch;
    for (int hundredths = -400; hundredths < 400; ++hundredths) {
      batch.behaviour[0] = batch.now[0] - static_cast<float>(hundredths) / 100;
      EXPECT_LE(batch.loss(cap).value().importance_weight[0], cap);
    }
  }
}

// Rejecting tokens leaves the others' gradients as they are: the denominator counts what was there before. Divided by
// what is left instead, they would grow.
TEST(MopdLoss, RejectionNeverRaisesAnotherTokensGradient) {
  const std::vector<double> all = Batch{}.loss().value().gradient;
  for (unsigned bits = 0; bits < 15; ++bits) {
    Batch batch{.counted = Kept{1, 1, 1, 1}};
    for (unsigned at = 0; at < 4; ++at) batch.mask[at] = bits >> at & 1U;
    const std::vector<double> left = batch.loss().value().gradient;
    batch.counted.reset();
    const std::vector<double> renormalised = batch.loss().value().gradient;
    for (unsigned at = 0; at < 4; ++at) {
      if (batch.mask[at] == 0) continue;
      EXPECT_EQ(left[at], all[at]);
      EXPECT_GT(std::abs(renormalised[at]), std::abs(left[at])) << "the wrong form is not told apart";
    }
  }
}

TEST(MopdLoss, AKeptTokenThatWasNeverCountedIsRefused) { EXPECT_FALSE((Batch{.counted = Kept{1, 1, 0, 1}}.loss())); }

TEST(MopdLoss, TheOrderOfTokensDoesNotMatter) {
  const Batch batch;
  const MopdLoss straight = batch.loss().value();
  Batch turned = batch;
  for (auto* field : {&turned.now, &turned.behaviour, &turned.logp_sum, &turned.weight_sum})
    std::ranges::reverse(*field);
  MopdLoss reversed = turned.loss().value();
  std::ranges::reverse(reversed.gradient);
  EXPECT_EQ(reversed.gradient, straight.gradient);
  EXPECT_NEAR(reversed.loss, straight.loss, 1e-15);
}

// Shards that know the whole batch's count add up to the loss of the whole.
TEST(MopdLoss, ShardsAddUp) {
  const Batch whole;
  double sum = 0;
  for (std::size_t at = 0; at < whole.now.size(); ++at) {
    const Batch shard{{whole.now[at]}, {whole.behaviour[at]}, {whole.logp_sum[at]}, {whole.weight_sum[at]}, {1},
                      std::nullopt};
    sum += shard.loss().value().loss;
  }
  EXPECT_NEAR(sum / 4, whole.loss().value().loss, 1e-15);
}

// What the rollout recorded, not what the current weights make of it: else the correction is off, and nothing says so.
TEST(MopdLoss, RecomputedBehaviourTurnsTheCorrectionOff) {
  const Batch batch;
  Batch recomputed = batch;
  recomputed.behaviour = batch.now;
  EXPECT_EQ(recomputed.loss().value().importance_weight, std::vector<double>(4, 1.0));
  EXPECT_NE(batch.loss().value().importance_weight, std::vector<double>(4, 1.0));
  EXPECT_NE(recomputed.loss().value().loss, batch.loss().value().loss);
}

// A batch whose log-probabilities are overwritten afterwards changes nothing of what was captured.
TEST(BehaviourLogprobs, OutliveARecomputation) {
  const Rows rows = Rows::padded(2, 3);
  std::vector<float> batch = {kNan, -1.0F, -2.0F, 0.0F, -3.0F, kNan};
  const BehaviourLogprobs captured = BehaviourLogprobs::capture(rows, batch, Kept{0, 1, 1, 0, 1, 0});
  std::ranges::fill(batch, -9.0F);
  const std::span<const float> view = captured.view();
  EXPECT_EQ(std::vector<float>(view.begin(), view.end()), (std::vector<float>{-1.0F, -2.0F, 0.0F, -3.0F, 0.0F, 0.0F}));
  EXPECT_TRUE(BehaviourLogprobs::capture(Rows::padded(0, 3), {}, {}).view().empty());
}

// The formula word by word from its inputs: what is detached stays at `sg`, only the carrier sees `now`.
double carried_loss(const Batch& batch, const std::vector<double>& sg, const std::vector<double>& now) {
  double sum = 0;
  for (std::size_t at = 0; at < now.size(); ++at) {
    const double weight = std::min(std::exp(sg[at] - static_cast<double>(batch.behaviour[at])), kCap);
    sum -= weight * std::exp(now[at] - sg[at]) *
           (static_cast<double>(batch.logp_sum[at]) - static_cast<double>(batch.weight_sum[at]) * sg[at]);
  }
  return sum / static_cast<double>(now.size());
}

TEST(MopdLoss, TheGradientIsTheSlopeOfTheCarrier) {
  const Batch batch;
  const MopdLoss at = batch.loss().value();
  const std::vector<double> now(batch.now.begin(), batch.now.end());
  EXPECT_NEAR(at.loss, carried_loss(batch, now, now), 1e-12);
  constexpr double kStep = 1e-5;
  for (std::size_t token = 0; token < now.size(); ++token) {
    std::vector<double> up = now;
    std::vector<double> down = now;
    up[token] += kStep;
    down[token] -= kStep;
    const double rise = carried_loss(batch, now, up) - carried_loss(batch, now, down);
    EXPECT_NEAR(rise / (2 * kStep), at.gradient[token], 1e-8);
  }
}

TEST(ComposeMopd, AnObjectiveThatDoesNotCountIsNotRead) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(compose_mopd({.rl = 0, .distillation = 0.5}, nan, 4.0), 2.0);
  EXPECT_EQ(compose_mopd({.rl = 2, .distillation = 0}, 3.0, nan), 6.0);
  EXPECT_TRUE(std::isnan(compose_mopd({.rl = 1, .distillation = 1}, nan, 1.0)));
  EXPECT_EQ(compose_mopd({.rl = 1, .distillation = 0.5}, 3.0, 4.0), 5.0);
}

TEST(MopdTarget, RefusesScoresThatDoNotFit) {
  const std::vector<float> two = {1.0F, 2.0F};
  const std::vector<float> three = {1.0F, 2.0F, 3.0F};
  EXPECT_FALSE(mopd_target({}));
  EXPECT_FALSE(mopd_target(std::vector<TeacherScore>{{two, 1.0}, {three, 1.0}}));
  for (const double weight :
       {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(mopd_target(std::vector<TeacherScore>{{two, weight}})) << weight;
  }
  // As float32 their sum is infinite, or 0: no target at all.
  EXPECT_FALSE(mopd_target(std::vector<TeacherScore>{{two, 1e300}, {two, 1.0}}));
  EXPECT_FALSE(mopd_target(std::vector<TeacherScore>{{two, 3e38}, {two, 3e38}}));
  EXPECT_FALSE(mopd_target(std::vector<TeacherScore>{{two, 1e-60}}));
}

TEST(MopdTarget, WeightsAreNotNormalised) {
  const std::vector<float> score = {-1.0F, -2.0F};
  const MopdTarget one = mopd_target(std::vector<TeacherScore>{{score, 3.0}}).value();
  EXPECT_EQ(one.logp_sum, (std::vector<float>{-3.0F, -6.0F}));
  EXPECT_EQ(one.weight_sum, (std::vector<float>{3.0F, 3.0F}));
  EXPECT_TRUE(mopd_target(std::vector<TeacherScore>{{std::span<const float>(), 1.0}}).value().logp_sum.empty());
}

}  // namespace
}  // namespace areal::algo
