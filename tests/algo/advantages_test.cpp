// The preparation of advantages: its order, what it refuses, and where the reference must be told apart.
#include "engine/algo/advantages.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/algo/next_token.h"
#include "engine/algo/padding.h"
#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

struct Batch {
  AdvantageConfig config;
  Rows rows = Rows::padded(0, 0);
  std::vector<float> rewards, behaviour, proximal, reference, values;
  std::vector<std::uint8_t> attention, trained, cut_off;
  std::vector<std::int32_t> turn_ids;
  std::vector<std::int64_t> group_sizes;

  [[nodiscard]] Result<Advantages> run() const {
    AdvantageInput input{rows, rewards, attention, trained, behaviour, {}, {}, {}, {}, {}, {}};
    if (!proximal.empty()) input.proximal = proximal;
    if (!reference.empty()) input.reference = reference;
    if (!values.empty()) input.values = values;
    if (!turn_ids.empty()) input.turn_ids = turn_ids;
    if (!cut_off.empty()) input.is_cut_off = Mask(cut_off);
    if (!group_sizes.empty()) input.group_sizes = group_sizes;
    return prepare_advantages(config, input);
  }
};

// One prompt token, then the answer.
Batch plain(std::vector<std::size_t> lengths, std::size_t width) {
  Batch batch;
  batch.config.kl_ctl = 0;
  batch.rows = Rows::padded(lengths.size(), width);
  for (const std::size_t length : lengths) {
    batch.rewards.push_back(1);
    batch.cut_off.push_back(0);
    for (std::size_t at = 0; at < width; ++at) {
      batch.attention.push_back(at < length ? 1 : 0);
      batch.trained.push_back(at > 0 && at < length ? 1 : 0);
      batch.behaviour.push_back(at > 0 && at < length ? -0.5F : 0.0F);
    }
  }
  return batch;
}

TEST(Advantages, OutcomeStandsWhereTheLastTokenIsPredicted) {
  const auto out = plain({3, 5}, 6).run().value();
  EXPECT_EQ(out.total_rewards, (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(out.trained, (std::vector<std::uint8_t>{1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(out.advantages, (std::vector<float>{1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0}));
}

// A divergence from log-probabilities of 0 is a bonus on unlikely tokens: refused, unless asked for.
TEST(Advantages, NoDivergenceWithoutAReference) {
  Batch batch = plain({5}, 6);
  for (const double kl_ctl : {-0.1, std::nan(""), 0.1}) {
    batch.config.kl_ctl = kl_ctl;
    EXPECT_FALSE(batch.run()) << kl_ctl;
  }
  batch.config.kl_without_reference = true;
  const auto bonus = batch.run().value();
  EXPECT_GT(bonus.advantages[0], 1.1F);
  batch.config.kl_without_reference = false;
  batch.config.kl_ctl = 0;
  EXPECT_EQ(batch.run().value().advantages[0], 1);
}

// Behaviour log-probabilities are what a ratio to the rollout policy needs: recomputing must not lose them.
TEST(Advantages, RecomputingKeepsTheBehaviour) {
  Batch batch = plain({4}, 4);
  batch.config.is_recomputed = true;
  EXPECT_FALSE(batch.run());
  batch.proximal = {-3, -4, -5, kNan};
  const auto out = batch.run().value();
  EXPECT_EQ(out.old, (std::vector<float>{-3, -4, -5, 0}));
  EXPECT_EQ(out.behaviour, (std::vector<float>{-0.5F, -0.5F, -0.5F, 0}));
  batch.config.is_decoupled = true;
  EXPECT_EQ(batch.run().value().old, out.behaviour);
}

Batch half(const Batch& batch, std::size_t first, std::size_t width) {
  Batch part = plain({}, width);
  part.config = batch.config;
  part.rows = Rows::padded(2, width);
  for (std::size_t row = first; row < first + 2; ++row) {
    part.rewards.push_back(batch.rewards[row]);
    part.cut_off.push_back(batch.cut_off[row]);
    for (std::size_t at = 0; at < width; ++at) {
      const std::size_t from = row * batch.rows.length(0) + at;
      part.attention.push_back(batch.attention[from]);
      part.trained.push_back(batch.trained[from]);
      part.behaviour.push_back(batch.behaviour[from]);
      part.values.push_back(batch.values[from]);
    }
  }
  return part;
}

// Rows of 6, 6, 4 and 4 tokens on one rank, or two and two on two ranks, which then have less padding. By stop reasons
// both are equal; by width the longest rows of each rank count as cut off, whatever they are.
TEST(Advantages, ShardsAgreeOnlyByStopReasons) {
  Batch batch = plain({6, 6, 4, 4}, 6);
  batch.values.assign(24, 0.5F);
  batch.cut_off = {1, 0, 0, 1};
  batch.config.discount = 0.9;
  const Batch long_half = half(batch, 0, 6);
  const Batch short_half = half(batch, 2, 4);
  const auto differ = [&](NoEos rule) {
    Batch all = batch, first = long_half, second = short_half;
    all.config.no_eos = first.config.no_eos = second.config.no_eos = rule;
    const auto whole = all.run().value(), a = first.run().value(), b = second.run().value();
    bool is_different = false;
    for (std::size_t row = 0; row < 4; ++row) {
      const auto& part = row < 2 ? a : b;
      const std::size_t width = row < 2 ? 6 : 4;
      for (std::size_t at = 0; at < width; ++at) {
        is_different = is_different || whole.advantages[row * 6 + at] != part.advantages[row % 2 * width + at];
      }
    }
    return is_different;
  };
  EXPECT_FALSE(differ(NoEos::kStopReason));
  EXPECT_TRUE(differ(NoEos::kWidth));
  batch.cut_off.clear();
  EXPECT_FALSE(batch.run());
}

// A first token that is trained would wrap around to the last column.
TEST(Advantages, ARowWithoutAPromptIsRefused) {
  Batch batch = plain({3, 3}, 4);
  batch.trained[4] = 1;
  const auto refused = batch.run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("row 1"), std::string::npos);
  const std::vector<std::uint8_t> wrapped =
      rolled_left<std::uint8_t>(Rows::padded(1, 4), std::vector<std::uint8_t>{1, 1, 1, 0});
  EXPECT_EQ(wrapped.back(), 1);
  EXPECT_FALSE(plain({0}, 0).run());
}

// Versions roll with the mask: else the first token of an answer reads as one of the prompt, and each boundary between
// versions is off by one.
TEST(NextToken, VersionsRollWithTheMask) {
  const Rows rows = Rows::padded(1, 5);
  const std::vector<std::int64_t> versions = {kNoVersion, kNoVersion, 4, 5, kNoVersion};
  const std::vector<std::uint8_t> trained = {0, 0, 1, 1, 0};
  const auto rolled = rolled_left<std::int64_t>(rows, versions);
  const auto mask = rolled_left<std::uint8_t>(rows, trained);
  std::vector<std::int64_t> right, wrong;
  for (std::size_t at = 0; at < mask.size(); ++at) {
    if (mask[at] == 0) continue;
    right.push_back(rolled[at]);
    wrong.push_back(versions[at]);
  }
  EXPECT_EQ(right, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(wrong, (std::vector<std::int64_t>{kNoVersion, 4}));
}

Batch draw_batch(Rng& rng, bool by_turn) {
  Batch batch = plain({9, 4, 7, 2, 9}, 9);
  const std::size_t elements = batch.rows.elements();
  batch.config.kl_ctl = 0.1;
  batch.config.kl_estimator = KlEstimator::kK3;
  batch.config.discount = 0.95;
  batch.config.lambda = {LambdaKind::kRelativePosition, 0.4};
  batch.config.time_step = by_turn ? TimeStep::kTurn : TimeStep::kToken;
  batch.config.adv_norm = NormConfig{NormLevel::kGroup, NormLevel::kGroup, false, true, 1e-5, 1};
  batch.group_sizes = {2, 3};
  batch.cut_off = {1, 0, 0, 0, 1};
  batch.rewards = draw_values(rng, 5);
  batch.behaviour = draw_values(rng, elements);
  batch.reference = draw_values(rng, elements);
  batch.values = draw_values(rng, elements);
  for (std::size_t at = 0; at < elements; ++at) {
    if (rng.draw_below(4) == 0) batch.trained[at] = 0;
    batch.turn_ids.push_back(static_cast<std::int32_t>(at % 9 / 3));
  }
  return batch;
}

TEST(Advantages, NothingThatIsNotTrainedLeaks) {
  Rng rng(1);
  for (int round = 0; round < 40; ++round) {
    const Batch clean = draw_batch(rng, round % 2 == 0);
    const auto wanted = clean.run().value();
    Batch bad = clean;
    spoil(bad.behaviour, bad.trained);
    spoil(bad.reference, wanted.trained);
    std::vector<std::uint8_t> is_read = wanted.trained;
    is_read[8] = is_read[44] = 1;  // What the cut off rows bootstrap from.
    spoil(bad.values, is_read);
    const auto got = bad.run().value();
    EXPECT_EQ(got.advantages, wanted.advantages);
    EXPECT_EQ(got.kl_rewards, wanted.kl_rewards);
    EXPECT_EQ(got.old, wanted.old);
    for (const float value : got.advantages) EXPECT_TRUE(std::isfinite(value));
  }
}

// Returns of turns do not know the divergence.
TEST(Advantages, DivergenceStaysLocalByTurn) {
  Rng rng(2);
  Batch batch = draw_batch(rng, true);
  batch.config.adv_norm.reset();
  const auto with = batch.run().value();
  batch.config.kl_ctl = 0;
  const auto without = batch.run().value();
  EXPECT_EQ(with.returns, without.returns);
  for (std::size_t at = 0; at < with.advantages.size(); ++at) {
    EXPECT_EQ(with.advantages[at], without.advantages[at] + with.kl_rewards[at]);
  }
  EXPECT_NE(with.advantages, without.advantages);
}

TEST(Advantages, RefusesWhatIsMissing) {
  Batch turns = plain({3}, 4);
  turns.config.time_step = TimeStep::kTurn;
  EXPECT_FALSE(turns.run());
  Batch endless = plain({3}, 4);
  endless.config.lambda.value = HUGE_VAL;
  EXPECT_FALSE(endless.run());
  endless.config.lambda = {LambdaKind::kLengthAdaptive, std::nan("")};
  EXPECT_FALSE(endless.run());
  Batch groups = plain({3, 3, 3}, 4);
  groups.config.reward_norm = NormConfig{NormLevel::kGroup, NormLevel::kNone, false, true, 1e-5, 2};
  EXPECT_FALSE(groups.run());
  groups.group_sizes = {1, 2};
  EXPECT_TRUE(groups.run());
}

// Each would come out as advantages that are NaN, or clipped between bounds the wrong way around.
TEST(Advantages, RefusesNumbersThatAreNone) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    for (double AdvantageConfig::* const field : {&AdvantageConfig::reward_bias, &AdvantageConfig::reward_scaling,
                                                  &AdvantageConfig::kl_ctl, &AdvantageConfig::discount}) {
      Batch batch = plain({3}, 4);
      batch.reference.assign(4, -1);
      batch.config.*field = bad;
      EXPECT_FALSE(batch.run()) << bad;
    }
  }
  Batch batch = plain({3}, 4);
  for (const double clip : {std::nan(""), -5.0}) {
    batch.config.reward_clip = clip;
    EXPECT_FALSE(batch.run()) << clip;
  }
  batch.config.reward_clip = HUGE_VAL;  // No clip.
  EXPECT_EQ(batch.run().value().advantages[0], 1);
}

// An online example: one sample, no normalization; the sign of the outcome must survive bias and scale.
TEST(Advantages, OneOnlineSampleKeepsItsSignal) {
  for (const float outcome : {0.0F, 1.0F}) {
    Batch batch = plain({4}, 6);
    batch.rewards = {outcome};
    batch.config.reward_bias = -0.5;
    batch.config.reward_scaling = 10;
    const auto out = batch.run().value();
    for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(out.advantages[at], outcome > 0 ? 5 : -5);
    // Centred on itself it would be gone.
    batch.config.reward_norm = NormConfig{NormLevel::kGroup, NormLevel::kNone, false, true, 1e-5, 1};
    EXPECT_EQ(batch.run().value().advantages[0], 0);
  }
}

TEST(Advantages, EmptyBatch) {
  Batch batch = plain({}, 5);
  batch.config.no_eos = NoEos::kWidth;
  const auto out = batch.run();
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->advantages.empty());
}

}  // namespace
}  // namespace areal::algo
