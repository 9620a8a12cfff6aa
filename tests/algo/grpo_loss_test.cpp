// The whole loss: its order, its refusals, what it reports; proximal policy, M2PO, critic, pairs and teacher.
#include "engine/algo/grpo_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/algo/critic_loss.h"
#include "engine/algo/dpo_loss.h"
#include "engine/algo/loss_scale.h"
#include "engine/algo/m2po.h"
#include "engine/algo/next_token.h"
#include "tests/algo/random_values.h"
#include "tests/algo/tokens.h"

namespace areal::algo {
namespace {

GrpoTokens tokens_of(const Batch& batch, const Rows& rows) {
  GrpoTokens tokens;
  tokens.logprobs = batch.logprobs;
  tokens.old = batch.old;
  tokens.advantages = batch.advantages;
  tokens.mask = batch.mask;
  tokens.rows = &rows;
  tokens.recomputed = batch.proximal;
  return tokens;
}

RejectionSettings inside(double upper, double lower) {
  RejectionSettings settings;
  settings.upper = upper;
  settings.lower = lower;
  return checked(settings).value();
}

const TokenSummary* find(const LossStatistics& statistics, std::string_view name) {
  for (const TokenSummary& summary : statistics.summaries) {
    if (summary.name == name) return &summary;
  }
  return nullptr;
}

double scalar(const LossStatistics& statistics, std::string_view name) {
  for (const NamedNumber& number : statistics.scalars) {
    if (number.name == name) return number.value;
  }
  return std::nan("");
}

TEST(GrpoLoss, RefusesSurrogatesThatExcludeEachOther) {
  GrpoSettings settings;
  settings.clip_higher = 0.3;
  settings.uses_sapo = settings.uses_cispo = true;
  EXPECT_FALSE(check_grpo(settings));
  settings.uses_sapo = false;
  EXPECT_TRUE(check_grpo(settings));
  settings.level = RatioLevel::kSequence;
  EXPECT_FALSE(check_grpo(settings));
  settings.level = RatioLevel::kToken;
  settings.clip_higher = std::nullopt;
  EXPECT_FALSE(check_grpo(settings));
  settings.uses_cispo = false;
  settings.uses_sapo = settings.is_decoupled = true;
  EXPECT_FALSE(check_grpo(settings));
}

TEST(GrpoLoss, ReusingTheTrainedPolicyReadsAsRatioOneForEveryFilter) {
  const Batch batch = random_batch({20, 30}, 31);
  const Rows rows = batch.rows();
  GrpoTokens tokens = tokens_of(batch, rows);
  tokens.recomputed = std::nullopt;
  GrpoSettings settings;
  settings.method = ProximalMethod::kReuseTrainLogp;
  settings.is_decoupled = true;
  settings.rejection = inside(1.1, 0.9);
  const auto got = grpo_loss(settings, tokens);
  ASSERT_TRUE(got);
  EXPECT_GT(scalar(got->statistics, "rs_filtered_fraction"), 0.0);
  const TokenSummary* const ratio = find(got->statistics, "importance_weight");
  ASSERT_NE(ratio, nullptr);
  EXPECT_EQ(ratio->summary.average, 1.0);
  EXPECT_EQ(ratio->tokens, count(batch.mask));
  EXPECT_EQ(find(got->statistics, "behave_imp_weight")->tokens, count(got->joint.statistics.behaviour->kept));
  // A ratio of 1 still has a gradient.
  const Mask kept(got->joint.statistics.behaviour->kept);
  for (std::size_t at = 0; at < batch.tokens(); ++at) EXPECT_EQ(got->joint.gradient[at] != 0, kept[at] != 0) << at;
}

TEST(GrpoLoss, M2poNarrowsTheDivisorAndRejectionDoesNot) {
  const Batch batch = random_batch({25}, 32);
  const Rows rows = batch.rows();
  GrpoSettings settings;
  settings.m2_threshold = 0.01;
  const auto narrowed = grpo_loss(settings, tokens_of(batch, rows));
  ASSERT_TRUE(narrowed);
  EXPECT_LT(count(narrowed->mask), count(batch.mask));
  EXPECT_EQ(scalar(narrowed->statistics, "n_valid_tokens_in_loss"), static_cast<double>(count(narrowed->mask)));
  GrpoSettings rejecting;
  rejecting.rejection = inside(1.05, 0.01);
  const auto rejected = grpo_loss(rejecting, tokens_of(batch, rows));
  ASSERT_TRUE(rejected);
  EXPECT_EQ(scalar(rejected->statistics, "n_valid_tokens_in_loss"), static_cast<double>(count(batch.mask)));
  const double filtered = scalar(rejected->statistics, "rs_filtered_fraction");
  EXPECT_GT(filtered, 0.0);
  EXPECT_NEAR(find(rejected->statistics, "behave_filtered_ratio")->summary.average, filtered, 1e-12);
}

TEST(GrpoLoss, ANanInTheProximalPolicyStopsItEvenWhereMasked) {
  Batch batch = random_batch({4}, 33);
  batch.mask = {1, 1, 0, 1};
  batch.proximal[2] = kNan;
  const Rows rows = batch.rows();
  const auto got = grpo_loss({}, tokens_of(batch, rows));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kCorrupt);
}

TEST(GrpoLoss, ReportsNoSummaryOverNothing) {
  Batch batch = random_batch({4}, 34);
  batch.mask.assign(4, 0);
  const Rows rows = batch.rows();
  const auto got = grpo_loss({}, tokens_of(batch, rows));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->statistics.summaries.empty());
  EXPECT_EQ(scalar(got->statistics, "masked_token_ratio"), 1.0);
}

TEST(GrpoLoss, ReportsApproximationsByMethod) {
  const Batch batch = random_batch({10}, 35);
  const Rows rows = batch.rows();
  const std::vector<std::int64_t> versions(10, 1);
  GrpoTokens tokens = tokens_of(batch, rows);
  tokens.versions = versions;
  GrpoSettings settings;
  settings.current_version = 4;
  const auto recompute = grpo_loss(settings, tokens);
  EXPECT_NE(find(recompute.value().statistics, "recompute/prox_logp"), nullptr);
  EXPECT_EQ(find(recompute.value().statistics, "loglinear/approx_logp"), nullptr);
  EXPECT_EQ(scalar(recompute.value().statistics, "sample_staleness_theta_avg"), 3.0);
  EXPECT_EQ(scalar(recompute.value().statistics, "sample_staleness_proximal_max"), 2.0);
  settings.method = ProximalMethod::kMetrics;
  const auto metrics = grpo_loss(settings, tokens);
  for (const char* name : {"loglinear/abs_error", "linear/rel_error", "rollout/squared_error",
                           "linear/behave_imp_weight_abs_error", "rollout/importance_weight_abs_error"}) {
    EXPECT_NE(find(metrics.value().statistics, name), nullptr) << name;
  }
  settings.method = ProximalMethod::kLoglinear;
  tokens.recomputed = std::nullopt;
  const auto loglinear = grpo_loss(settings, tokens);
  EXPECT_NE(find(loglinear.value().statistics, "loglinear/behave_imp_weight"), nullptr);
  EXPECT_EQ(find(loglinear.value().statistics, "loglinear/abs_error"), nullptr);
  EXPECT_EQ(find(loglinear.value().statistics, "linear/approx_logp"), nullptr);
}

TEST(GrpoLoss, ATeacherAloneDoesNotReadThePolicyLoss) {
  const std::vector<float> logprobs = {-1.0F};
  const std::vector<std::uint8_t> mask = {1};
  PolicyLoss joint;
  joint.loss = kNan;
  joint.gradient = {kNan};
  ASSERT_TRUE(distil({0.0, 1.0}, logprobs, logprobs, std::vector{-0.5F}, mask, joint));
  EXPECT_EQ(joint.loss, -0.5F);
  EXPECT_EQ(joint.gradient[0], -0.5F);
}

TEST(Proximal, VersionsAreRolledAsLogProbabilitiesAre) {
  const Rows rows = Rows::padded(1, 4);
  const std::vector<std::int64_t> versions = {-1, -1, 3, 3};  // Two of a prompt, two sampled by version 3.
  const auto rolled = rolled_left<std::int64_t>(rows, versions);
  EXPECT_EQ(rolled, (std::vector<std::int64_t>{-1, 3, 3, -1}));
  // At index 1 the first sampled token is predicted.
  EXPECT_EQ(proximal_alpha(rolled[1], 5), 0.5F);
  EXPECT_EQ(proximal_alpha(versions[1], 5), 0.0F);
  EXPECT_TRUE(rolled_left<std::int64_t>(Rows::padded(2, 0), {}).empty());
}

TEST(Proximal, ForwardPassIsNeededByDecoupledLossesWhoseMethodDoesNotSkipIt) {
  for (const auto method : {ProximalMethod::kRecompute, ProximalMethod::kLoglinear, ProximalMethod::kMetrics,
                            ProximalMethod::kReuseTrainLogp}) {
    const bool skips = method == ProximalMethod::kLoglinear || method == ProximalMethod::kReuseTrainLogp;
    EXPECT_EQ(skips_forward_pass(method), skips);
    for (const bool recomputes : {false, true}) {
      EXPECT_EQ((ProximalRule{true, recomputes, method}.needs_forward()), !skips);
      EXPECT_EQ((ProximalRule{false, recomputes, method}.needs_forward()), recomputes);
    }
  }
}

TEST(Proximal, ATokenOfAPromptDoesNotReadTheTrainedPolicy) {
  const std::vector<float> old = {0.0F, -1.0F};
  const std::vector<float> logprobs = {-std::numeric_limits<float>::infinity(), -1.0F};
  const std::vector<std::int64_t> versions = {-1, 0};
  const auto got = approximate_proximal(ProximalApproximation::kLoglinear, old, logprobs, versions, 2);
  EXPECT_EQ(got, (std::vector<float>{0.0F, -1.0F}));
}

TEST(M2po, ANarrowerThresholdNeverKeepsMore) {
  const Batch batch = random_batch({60}, 41);
  std::size_t before = count(batch.mask);
  for (const double threshold : {1.0, 0.1, 0.03, 0.01, 0.003, 0.0}) {
    const auto got = m2po_mask(batch.old, batch.proximal, batch.mask, threshold);
    ASSERT_TRUE(got);
    EXPECT_LE(count(*got), before);
    EXPECT_GE(count(*got), 1U);
    before = count(*got);
  }
  EXPECT_EQ(before, 1U);
  EXPECT_FALSE(m2po_mask(batch.old, batch.proximal, Mask(batch.mask).first(3), 0.1));
  EXPECT_FALSE(m2po_mask(batch.old, batch.proximal, batch.mask, std::nan("")));
}

// The mean of 0.25 and 0 is 0.125: below the threshold counts, at it does not.
TEST(M2po, AMeanAtTheThresholdIsNotBelowIt) {
  const std::vector<float> old = {0.5F, 0.0F};
  const std::vector<float> proximal = {0.0F, 0.0F};
  const std::vector<std::uint8_t> mask = {1, 1};
  EXPECT_EQ(count(m2po_mask(old, proximal, mask, 0.125).value()), 1U);
  EXPECT_EQ(count(m2po_mask(old, proximal, mask, 0.126).value()), 2U);
}

// The reference divides 0 by 0 there.
TEST(CriticLoss, AnEmptyMaskGivesZero) {
  const std::vector<float> values = {1.0F, 2.0F};
  const std::vector<std::uint8_t> mask = {0, 0};
  CriticLoss got;
  ASSERT_TRUE(critic_loss({}, {values, values, values, Mask(mask)}, Statistics::kFill, got));
  const double reference = masked_sum(std::span<const float>(values), mask) / static_cast<double>(count(mask));
  EXPECT_TRUE(std::isnan(reference));
  EXPECT_EQ(got.loss, 0.0F);
  EXPECT_EQ(got.gradient, (std::vector<float>{0.0F, 0.0F}));
  ASSERT_TRUE(critic_loss({}, {{}, {}, {}, std::nullopt}, Statistics::kFill, got));
  EXPECT_EQ(got.loss, 0.0F);
  EXPECT_FALSE(critic_loss({}, {values, values, std::span(values).first(1), std::nullopt}, Statistics::kFill, got));
}

TEST(PairLogRatios, AMaskedInfinityDoesNotPoisonASum) {
  const Rows rows = Rows::packed(std::vector<std::int32_t>{0, 3, 5});
  const std::vector<float> logprobs = {-std::numeric_limits<float>::infinity(), -1.0F, kNan, -2.0F, kNan};
  const std::vector<std::uint8_t> mask = {0, 0, 1, 0, 1};
  const auto got = pair_log_ratios(rows, logprobs, logprobs, mask, std::nullopt);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->policy[0], (Pair{-1.0, -2.0}));
  // By multiplication with the mask it would.
  EXPECT_TRUE(std::isnan(static_cast<double>(logprobs[0]) * mask[1] - 1.0));
  EXPECT_FALSE(pair_log_ratios(Rows::packed(std::vector<std::int32_t>{0, 3, 4, 5}), logprobs, logprobs, mask, {}));
}

TEST(LossScale, RefusesAStepWithoutTokens) {
  EXPECT_FALSE(loss_scale(0, 0, 2));
  EXPECT_FALSE(loss_scale(-1, 2, 2));
  EXPECT_FALSE(loss_scale(3, 2, 2));
  EXPECT_EQ(loss_scale(0, 2, 2).value(), 0.0);
}

}  // namespace
}  // namespace areal::algo
