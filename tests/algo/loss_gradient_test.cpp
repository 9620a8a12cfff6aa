// Gradients of all losses against central differences of the same formulas in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/algo/critic_loss.h"
#include "engine/algo/distillation.h"
#include "engine/algo/dpo_loss.h"
#include "engine/algo/policy_terms.h"
#include "tests/algo/tokens.h"

namespace areal::algo {
namespace {

using Doubles = std::vector<double>;
using LossOf = std::function<double(const Doubles&)>;

Doubles differences(const LossOf& loss, Doubles at) {
  constexpr double kStep = 1e-6;
  Doubles slopes(at.size());
  for (std::size_t k = 0; k < at.size(); ++k) {
    const double middle = at[k];
    at[k] = middle + kStep;
    const double above = loss(at);
    at[k] = middle - kStep;
    slopes[k] = (above - loss(at)) / (2 * kStep);
    at[k] = middle;
  }
  return slopes;
}

void expect_near(const std::string& name, const std::vector<float>& got, const Doubles& wanted) {
  ASSERT_EQ(got.size(), wanted.size()) << name;
  for (std::size_t at = 0; at < got.size(); ++at) {
    EXPECT_NEAR(got[at], wanted[at], 1e-7 + 2e-5 * std::abs(wanted[at])) << name << " at " << at;
  }
}

enum class Kind { kPpo, kCispo, kSapo };

struct Case {
  std::string name;
  Kind kind = Kind::kPpo;
  bool is_dual = false;
  double dual = 0;
  bool is_sequence = false;
};

double term_of(const Case& of, double ratio, double advantage, double logprob) {
  const ClipBand<double> band{0.8, 1.28, of.is_dual, of.dual};
  switch (of.kind) {
    case Kind::kPpo:
      return ppo_term<double>(ratio, advantage, band).loss;
    case Kind::kCispo:
      return cispo_term<double>(ratio, advantage, logprob, band).loss;
    case Kind::kSapo:
      return sapo_term<double>(ratio, advantage, 1.0, 1.05).loss;
  }
  return 0;
}

// The loss written down as the formula says, in float64; weights are constants, and so is CISPO's ratio.
double loss_in_double(const Case& of, const Batch& batch, const PolicyLoss& got, const Doubles& logprobs) {
  const Rows rows = batch.rows();
  const auto& behaviour = got.statistics.behaviour;
  const std::vector<std::uint8_t>& kept = behaviour ? behaviour->kept : batch.mask;
  const std::vector<float>& base = of.kind == Kind::kSapo ? batch.old : batch.proximal;
  double sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    double log_ratio = 0;
    double advantage = 0;
    double tokens = 0;
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      if (kept[at] == 0) continue;
      log_ratio += logprobs[at] - static_cast<double>(base[at]);
      advantage += static_cast<double>(batch.advantages[at]);
      tokens += 1;
    }
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      if (kept[at] == 0) continue;
      const double now = of.kind == Kind::kCispo ? static_cast<double>(batch.logprobs[at]) : logprobs[at];
      const double own = now - static_cast<double>(base[at]);
      const double ratio = std::exp(of.is_sequence ? log_ratio / tokens : own);
      const double gain = of.is_sequence ? advantage / tokens : static_cast<double>(batch.advantages[at]);
      const double weight = behaviour ? static_cast<double>(behaviour->weights[at]) : 1.0;
      sum += term_of(of, ratio, gain, logprobs[at]) * weight;
    }
  }
  return sum / std::max(1.0, static_cast<double>(count(batch.mask)));
}

TEST(LossGradient, OfEveryPolicyLossIsThatOfItsFormula) {
  const std::vector<Case> cases = {{"ppo"},
                                   {"ppo dual", Kind::kPpo, true, 1.1},
                                   {"gspo", Kind::kPpo, true, 1.5, true},
                                   {"ppo masking"},
                                   {"ppo clamping"},
                                   {"gspo masking sequences", Kind::kPpo, false, 0, true},
                                   {"cispo", Kind::kCispo},
                                   {"cispo masking", Kind::kCispo},
                                   {"sapo", Kind::kSapo},
                                   {"sapo of sequences", Kind::kSapo, false, 0, true}};
  ASSERT_EQ(cases.size(), all_losses().size());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Batch batch = random_batch({9, 1, 14, 6}, seed);
    const Rows rows = batch.rows();
    for (std::size_t k = 0; k < cases.size(); ++k) {
      ASSERT_EQ(cases[k].name, all_losses()[k].name);
      const PolicyLoss got = all_losses()[k].run(batch.view(rows));
      const Doubles at(batch.logprobs.begin(), batch.logprobs.end());
      const LossOf loss = [&](const Doubles& logprobs) { return loss_in_double(cases[k], batch, got, logprobs); };
      EXPECT_NEAR(got.loss, loss(at), 1e-6) << cases[k].name;
      expect_near(cases[k].name, got.gradient, differences(loss, at));
    }
  }
}

TEST(LossGradient, OfTheCriticIsThatOfItsFormula) {
  const Batch batch = random_batch({23}, 4);
  for (const bool is_huber : {false, true}) {
    const CriticSettings settings{0.3, is_huber ? ValueDistance::kHuber : ValueDistance::kHalfSquare};
    std::vector<float> values = batch.logprobs;
    for (float& value : values) value *= 8;  // Some beyond Huber's delta.
    CriticLoss got;
    ASSERT_TRUE(critic_loss(settings, {values, batch.old, batch.advantages, Mask(batch.mask)}, Statistics::kFill, got));
    const LossOf loss = [&](const Doubles& now) {
      double sum = 0;
      for (std::size_t at = 0; at < now.size(); ++at) {
        if (batch.mask[at] == 0) continue;
        sum += critic_term<double>(now[at], static_cast<double>(batch.old[at]),
                                   static_cast<double>(batch.advantages[at]), {0.3, is_huber, 10.0})
                   .loss;
      }
      return sum / static_cast<double>(count(batch.mask));
    };
    expect_near("critic", got.gradient, differences(loss, Doubles(values.begin(), values.end())));
  }
}

TEST(LossGradient, OfATeacherIsThatOfItsFormula) {
  const Batch batch = random_batch({15}, 8);
  const double tokens = static_cast<double>(count(batch.mask));
  for (const double policy : {0.0, 1.0}) {
    PolicyLoss got;
    got.gradient.assign(batch.tokens(), 0.0F);
    ASSERT_TRUE(distil({policy, 0.5}, batch.logprobs, batch.old, batch.proximal, batch.mask, got));
    const LossOf loss = [&](const Doubles& now) {
      double sum = 0;
      for (std::size_t at = 0; at < now.size(); ++at) {
        if (batch.mask[at] == 0) continue;
        const double teacher = static_cast<double>(batch.proximal[at]);
        const double held = teacher - static_cast<double>(batch.logprobs[at]);
        sum += policy == 0 ? -std::exp(now[at] - static_cast<double>(batch.old[at])) * held : now[at] - teacher;
      }
      return 0.5 * sum / tokens;
    };
    expect_near("teacher", got.gradient, differences(loss, Doubles(batch.logprobs.begin(), batch.logprobs.end())));
  }
}

TEST(LossGradient, OfPreferencesIsThatOfTheirFormula) {
  for (const PreferenceLoss kind : {PreferenceLoss::kSigmoid, PreferenceLoss::kIpo}) {
    for (const double logit : {-40.0, -3.0, -0.1, 0.0, 0.7, 5.0}) {
      const LossOf loss = [&](const Doubles& at) { return preference_term(kind, 0.3, at[0]).loss; };
      const double wanted = differences(loss, {logit})[0];
      EXPECT_NEAR(preference_term(kind, 0.3, logit).slope, wanted, 1e-8 + 1e-7 * std::abs(wanted));
    }
  }
}

// The value and the clipped one lie equally far off, on two sides of the target.
TEST(LossGradient, OfATieOfTheCriticIsTheMeanOfBoth) {
  EXPECT_EQ(critic_term<double>(2.0, 0.5, 1.5, {0.5, false, 10.0}).slope, 0.25);
  EXPECT_EQ(critic_term<double>(2.0, 1.8, 1.5, {0.5, false, 10.0}).slope, 0.5);
}

TEST(LossGradient, AtRatioOneIsMinusTheAdvantageForEveryTemperature) {
  for (const double tau : {0.3, 1.0, 2.0, 10.0}) {
    EXPECT_NEAR(sapo_term<double>(1.0, 0.7, tau, tau).slope, -0.7, 1e-12);
  }
}

// Beyond the band a gain has no slope; a loss keeps it, unless the dual clip bounds it.
TEST(LossGradient, OfClippedTokensIsZeroOnTheSideThatGains) {
  const ClipBand<double> band{0.8, 1.2, false, 0};
  EXPECT_EQ(ppo_term<double>(1.5, 1.0, band).slope, 0.0);
  EXPECT_EQ(ppo_term<double>(0.5, 1.0, band).slope, -1.0);
  EXPECT_EQ(ppo_term<double>(0.5, -1.0, band).slope, 0.0);
  EXPECT_EQ(ppo_term<double>(5.0, -1.0, band).slope, 1.0);
  EXPECT_EQ(ppo_term<double>(5.0, -1.0, {0.8, 1.2, true, 3.0}).slope, 0.0);
  EXPECT_EQ(ppo_term<double>(5.0, -1.0, {0.8, 1.2, true, 3.0}).loss, 3.0);
  EXPECT_EQ(cispo_term<double>(5.0, 1.0, -2.0, band).slope, -1.2);
}

}  // namespace
}  // namespace areal::algo
