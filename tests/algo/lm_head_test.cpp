// The reference of a language model's head: chunks, cuts of the vocabulary, gradients, precision.
#include "engine/algo/lm_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/algo/lm_head_choice.h"
#include "engine/base/rng.h"

namespace areal::algo {
namespace {

constexpr std::size_t kTokens = 7;
constexpr std::size_t kHidden = 5;
constexpr std::size_t kWords = 13;

float draw_unit(Rng& rng) { return static_cast<float>(rng.draw_below(2001)) / 1000.0F - 1.0F; }

struct Operands {
  std::vector<float> hidden;
  std::vector<float> values;
  std::vector<float> bias;
  std::vector<std::int64_t> labels;

  Operands() {
    Rng rng(7);
    for (std::size_t i = 0; i < kTokens * kHidden; ++i) hidden.push_back(2 * draw_unit(rng));
    for (std::size_t i = 0; i < kWords * kHidden; ++i) values.push_back(draw_unit(rng));
    for (std::size_t i = 0; i < kWords; ++i) bias.push_back(draw_unit(rng));
    for (std::size_t i = 0; i < kTokens; ++i) labels.push_back(static_cast<std::int64_t>(rng.draw_below(kWords)));
  }
};

struct Pass {
  HeadOutput output;
  HeadGradients gradients;
  std::uint64_t collectives = 0;
};

Pass run_head(const Operands& operands, TensorGroup group, const HeadSettings& settings) {
  const HeadWeight weight = HeadWeight::from_float(operands.values, kHidden);
  const HeadInput input{operands.hidden, weight, operands.bias, operands.labels};
  Pass made{head_forward(input, group, settings).value(), {}, 0};
  made.gradients = head_backward(input, group, settings, made.output, std::vector<double>(kTokens, 1.0));
  made.collectives = group.collectives();
  return made;
}

void expect_near(const std::vector<double>& wanted, const std::vector<double>& got, double tolerance = 1e-12) {
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t at = 0; at < wanted.size(); ++at) EXPECT_NEAR(wanted[at], got[at], tolerance) << at;
}

void expect_same(const Pass& wanted, const Pass& got) {
  expect_near(wanted.output.logp, got.output.logp);
  expect_near(wanted.output.entropy, got.output.entropy);
  expect_near(wanted.gradients.hidden, got.gradients.hidden);
  expect_near(wanted.gradients.weight, got.gradients.weight);
  expect_near(wanted.gradients.bias, got.gradients.bias);
}

TEST(LmHead, NeitherChunksNorTheCutOfTheVocabularyMatter) {
  const Operands operands;
  const Pass whole = run_head(operands, TensorGroup::even(kWords, 1), {.temperature = 0.7, .chunk = 100});
  for (const std::size_t chunk : {1U, 2U, 3U, 7U}) {
    for (const std::size_t ranks : {1U, 2U, 4U, 13U, 16U}) {
      expect_same(whole, run_head(operands, TensorGroup::even(kWords, ranks), {.temperature = 0.7, .chunk = chunk}));
    }
    expect_same(whole, run_head(operands, TensorGroup({0, 0, 11, 11, 13}), {.temperature = 0.7, .chunk = chunk}));
  }
}

TEST(LmHead, LogitsOfAllTokensAreNeverHeldAtOnce) {
  const Operands operands;
  const Pass chunked = run_head(operands, TensorGroup::even(kWords, 2), {.chunk = 2});
  EXPECT_EQ(chunked.output.logits_held_max, 2U * 7U) << "one chunk of one rank's share";
  EXPECT_EQ(chunked.collectives, 4U * 2U + 4U)
      << "a MAX and a SUM a chunk, one SUM a chunk backwards: the head's group alone";
}

TEST(LmHead, ProbabilitiesAddUpAndEntropyIsTheirOwn) {
  Operands operands;
  std::vector<double> total(kTokens, 0.0);
  std::vector<double> entropy(kTokens, 0.0);
  for (std::size_t word = 0; word < kWords; ++word) {
    operands.labels.assign(kTokens, static_cast<std::int64_t>(word));
    const Pass one = run_head(operands, TensorGroup::even(kWords, 3), {.temperature = 0.7});
    for (std::size_t token = 0; token < kTokens; ++token) {
      total[token] += std::exp(one.output.logp[token]);
      entropy[token] -= std::exp(one.output.logp[token]) * one.output.logp[token];
    }
  }
  expect_near(std::vector<double>(kTokens, 1.0), total);
  expect_near(entropy, run_head(Operands(), TensorGroup::even(kWords, 3), {.temperature = 0.7}).output.entropy, 1e-9);
}

TEST(LmHead, GradientsAreSlopes) {
  const Operands operands;
  const HeadSettings settings{.temperature = 0.7, .chunk = 3};
  const Pass at = run_head(operands, TensorGroup::even(kWords, 2), settings);
  const auto sum = [&](const Operands& moved) {
    double all = 0;
    for (const double logp : run_head(moved, TensorGroup::even(kWords, 2), settings).output.logp) all += logp;
    return all;
  };
  constexpr float kStep = 1.0F / 64;
  const auto slope = [&](std::vector<float> Operands::* field, std::size_t place) {
    Operands up = operands;
    Operands down = operands;
    (up.*field)[place] += kStep;
    (down.*field)[place] -= kStep;
    return (sum(up) - sum(down)) / (static_cast<double>((up.*field)[place]) - (down.*field)[place]);
  };
  for (const std::size_t place : {0U, 9U, 33U}) {
    EXPECT_NEAR(slope(&Operands::hidden, place), at.gradients.hidden[place], 1e-3);
    EXPECT_NEAR(slope(&Operands::values, place), at.gradients.weight[place], 1e-3);
  }
  EXPECT_NEAR(slope(&Operands::bias, 4), at.gradients.bias[4], 1e-3);
}

TEST(LmHead, AFrozenHeadHasNoGradientOfItsOwn) {
  const Operands operands;
  const HeadWeight weight = HeadWeight::from_float(operands.values, kHidden);
  const HeadInput input{operands.hidden, weight, operands.bias, operands.labels};
  TensorGroup group = TensorGroup::even(kWords, 2);
  const HeadOutput output = head_forward(input, group, {}).value();
  const HeadGradients frozen = head_backward(input, group, {}, output, std::vector<double>(kTokens, 1.0), true);
  EXPECT_TRUE(frozen.weight.empty() && frozen.bias.empty());
  expect_near(run_head(operands, TensorGroup::even(kWords, 2), {}).gradients.hidden, frozen.hidden);
}

// Without the maximum of the whole vocabulary the exponential overflows.
TEST(LmHead, LargeLogitsStayFinite) {
  Operands operands;
  for (float& value : operands.hidden) value *= 1e4F;
  const Pass got = run_head(operands, TensorGroup::even(kWords, 4), {.chunk = 2});
  for (std::size_t token = 0; token < kTokens; ++token) {
    EXPECT_TRUE(std::isfinite(got.output.logp[token]) && std::isfinite(got.output.entropy[token]));
  }
  EXPECT_FALSE(std::isfinite(std::exp(got.output.max[0]))) << "the wrong form is not told apart";
}

// A bias of -infinity rules words out, as of a padded vocabulary: they weigh nothing, as if they were not there.
TEST(LmHead, WordsThatAreRuledOutWeighNothing) {
  Operands operands;
  for (std::int64_t& label : operands.labels) label %= 9;
  Operands shorter = operands;
  shorter.values.resize(9 * kHidden);
  shorter.bias.resize(9);
  std::fill(operands.bias.begin() + 9, operands.bias.end(), -std::numeric_limits<float>::infinity());
  const Pass wanted = run_head(shorter, TensorGroup::even(9, 1), {.chunk = 3});
  for (const std::size_t ranks : {1U, 2U, 13U}) {
    const Pass got = run_head(operands, TensorGroup::even(kWords, ranks), {.chunk = 3});
    expect_near(wanted.output.logp, got.output.logp);
    expect_near(wanted.output.entropy, got.output.entropy);
    expect_near(wanted.gradients.hidden, got.gradients.hidden);
  }
}

TEST(LmHead, NoTokensGiveNothing) {
  const Operands operands;
  const HeadWeight weight = HeadWeight::from_float(operands.values, kHidden);
  TensorGroup group = TensorGroup::even(kWords, 2);
  EXPECT_TRUE(head_forward({{}, weight, {}, {}}, group, {}).value().logp.empty());
  EXPECT_EQ(group.collectives(), 0U);
}

TEST(LmHead, RefusesWhatHasNoAnswer) {
  const Operands operands;
  const HeadWeight weight = HeadWeight::from_float(operands.values, kHidden);
  const auto refused = [&](std::vector<std::int64_t> labels, std::size_t words, const HeadSettings& settings) {
    TensorGroup group = TensorGroup::even(words, 2);
    return !head_forward({operands.hidden, weight, operands.bias, labels}, group, settings);
  };
  EXPECT_FALSE(refused(operands.labels, kWords, {}));
  for (const double temperature :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(refused(operands.labels, kWords, {.temperature = temperature})) << temperature;
  }
  EXPECT_TRUE(refused(operands.labels, kWords, {.chunk = 0}));
  EXPECT_TRUE(refused(operands.labels, kWords + 1, {}));
  EXPECT_TRUE(refused({1, 2}, kWords, {}));
  EXPECT_TRUE(refused(std::vector<std::int64_t>(kTokens, -1), kWords, {}));
  EXPECT_TRUE(refused(std::vector<std::int64_t>(kTokens, kWords), kWords, {}));
}

TEST(LmHead, Fp32OutputOfBf16OperandsIsNearerThanBf16Output) {
  const std::vector<std::uint16_t> stored = {0x3DCD, 0x3E4D, 0x3E9A, 0xBECD};  // Near 0.1, 0.2, 0.3, -0.4.
  const HeadWeight weight = HeadWeight::from_bf16(stored, 2);
  EXPECT_EQ(weight.row(1)[1], -0.400390625F);
  const std::vector<float> hidden = {1.0078125F, 0.333984375F};
  const std::vector<std::int64_t> labels = {0};
  const HeadInput input{hidden, weight, {}, labels};
  const float exact = head_logits(input, 0, 0, 1, LogitRounding::kFp32)[0];
  const float rounded = head_logits(input, 0, 0, 1, LogitRounding::kBf16)[0];
  EXPECT_NE(exact, rounded);
  EXPECT_LE(std::abs(exact - rounded), std::abs(exact) / 256);
}

TEST(LmHeadChoice, FourKindsAndTheirConflicts) {
  EXPECT_EQ(choose_head({}).value(), HeadKind::kNative);
  EXPECT_EQ(choose_head({.fp32_head = true}).value(), HeadKind::kFp32Patched);
  EXPECT_EQ(choose_head({.chunked_logits = true}).value(), HeadKind::kChunkedNativeInputs);
  EXPECT_EQ(choose_head({.chunked_logits = true, .fp32_head = true, .chunk_size = 128}).value(),
            HeadKind::kChunkedFp32Inputs);
  EXPECT_FALSE(choose_head({.chunked_logits = true, .chunk_size = -1}));
  EXPECT_FALSE(choose_head({.chunk_size = 128}));
  EXPECT_FALSE(choose_head({.chunked_logits = true, .entropy_requires_grad = true, .chunk_size = 128}));
  EXPECT_FALSE(choose_head({.chunked_logits = true, .multi_token_prediction = true, .chunk_size = 128}));
}

TEST(LmHeadChoice, HeadsAreKnownByTheirLastName) {
  for (const char* name : {"output_layer", "lm_head", "decoder.output_layer", "module.module.lm_head"})
    EXPECT_TRUE(is_head_module(name)) << name;
  for (const char* name : {"output_layer_extra", "decoder.layers.0.mlp", "", "lm_head.weight"})
    EXPECT_FALSE(is_head_module(name)) << name;
}

}  // namespace
}  // namespace areal::algo
