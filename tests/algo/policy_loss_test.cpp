// What holds for every policy loss: where tokens lie, how they are cut, and what masked ones hold changes nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/algo/cispo_loss.h"
#include "engine/algo/critic_loss.h"
#include "engine/algo/loss_kernel.h"
#include "engine/algo/loss_scale.h"
#include "engine/algo/policy_terms.h"
#include "engine/algo/ppo_loss.h"
#include "engine/algo/sapo_loss.h"
#include "tests/algo/random_values.h"
#include "tests/algo/tokens.h"

namespace areal::algo {
namespace {

PolicyLoss loss_of(const NamedLoss& loss, const Batch& batch) {
  const Rows rows = batch.rows();
  return loss.run(batch.view(rows));
}

Batch mixed_batch() { return random_batch({7, 1, 12, 33, 4, 64, 2, 9}, 11); }

TEST(PolicyLoss, DoesNotChangeWithThePaddingsWidth) {
  const Batch batch = mixed_batch();
  for (const NamedLoss& loss : all_losses()) {
    const PolicyLoss packed = loss_of(loss, batch);
    for (const std::size_t width : {std::size_t{64}, std::size_t{71}, std::size_t{96}}) {
      const Batch wide = padded(batch, width);
      const PolicyLoss got = loss_of(loss, wide);
      EXPECT_EQ(got.loss, packed.loss) << loss.name << " at width " << width;
      for (std::size_t row = 0; row < batch.lengths.size(); ++row) {
        const auto wanted = row_of(batch, packed.gradient, row);
        const auto of_row = row_of(wide, got.gradient, row);
        for (std::size_t at = 0; at < of_row.size(); ++at) {
          EXPECT_EQ(of_row[at], at < wanted.size() ? wanted[at] : 0.0F) << loss.name << " row " << row << " at " << at;
        }
      }
    }
  }
}

TEST(PolicyLoss, DoesNotChangeWithTheOrderOfRows) {
  const Batch batch = mixed_batch();
  const std::vector<std::size_t> order = {5, 2, 7, 0, 3, 1, 6, 4};
  for (const NamedLoss& loss : all_losses()) {
    const PolicyLoss wanted = loss_of(loss, batch);
    const Batch turned = rows_of(batch, order);
    const PolicyLoss got = loss_of(loss, turned);
    EXPECT_NEAR(got.loss, wanted.loss, 1e-6F) << loss.name;
    for (std::size_t row = 0; row < order.size(); ++row) {
      const auto from = row_of(batch, wanted.gradient, order[row]);
      const auto to = row_of(turned, got.gradient, row);
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin(), to.end())) << loss.name << " row " << row;
    }
  }
}

// Scaled by tokens / all tokens * ranks and averaged over ranks, parts give the loss and gradient of the whole.
TEST(PolicyLoss, DoesNotChangeWithTheCutIntoMicroBatchesAndRanks) {
  const Batch batch = mixed_batch();
  using Rank = std::vector<std::vector<std::size_t>>;
  const std::vector<std::vector<Rank>> cuts = {{Rank{{0}, {1, 2}, {3}, {4, 5, 6}, {7}}},
                                               {Rank{{0, 1, 2, 3}, {4}}, Rank{{5, 6}, {7}}},
                                               {Rank{{7, 3}}, Rank{{1, 0}}, Rank{{2, 4, 5, 6}}}};
  const double all = static_cast<double>(count(batch.mask));
  for (const NamedLoss& loss : all_losses()) {
    const PolicyLoss whole = loss_of(loss, batch);
    for (const auto& ranks : cuts) {
      const double dp = static_cast<double>(ranks.size());
      double sum = 0;
      for (const auto& rank : ranks) {
        for (const auto& chosen : rank) {
          const Batch part = rows_of(batch, chosen);
          const PolicyLoss got = loss_of(loss, part);
          const double scale = loss_scale(static_cast<double>(count(part.mask)), all, dp).value() / dp;
          sum += static_cast<double>(got.loss) * scale;
          for (std::size_t row = 0; row < chosen.size(); ++row) {
            const auto wanted = row_of(batch, whole.gradient, chosen[row]);
            const auto of_row = row_of(part, got.gradient, row);
            for (std::size_t at = 0; at < of_row.size(); ++at) {
              EXPECT_NEAR(static_cast<double>(of_row[at]) * scale, wanted[at], 1e-8) << loss.name;
            }
          }
        }
      }
      EXPECT_NEAR(sum, whole.loss, 1e-6) << loss.name;
    }
  }
}

TEST(PolicyLoss, NothingThatIsMaskedLeaks) {
  Batch batch = mixed_batch();
  for (const NamedLoss& loss : all_losses()) {
    const PolicyLoss wanted = loss_of(loss, batch);
    for (const float poison : {kNan, kInfinity, -kInfinity, 1000.0F}) {
      for (int field = 0; field < 4; ++field) {
        Batch poisoned = batch;
        std::vector<float>* const fields[] = {&poisoned.logprobs, &poisoned.proximal, &poisoned.old,
                                              &poisoned.advantages};
        for (std::size_t at = 0; at < batch.tokens(); ++at) {
          if (batch.mask[at] == 0) (*fields[field])[at] = poison;
        }
        const PolicyLoss got = loss_of(loss, poisoned);
        EXPECT_EQ(got.loss, wanted.loss) << loss.name << ", field " << field << " holds " << poison;
        EXPECT_EQ(got.gradient, wanted.gradient) << loss.name << ", field " << field << " holds " << poison;
      }
    }
  }
}

// Masking by multiplication, after exp: 0 * inf. Both forms agree on ordinary numbers, and only on those.
TEST(PolicyLoss, MaskingByMultiplicationIsToldApart) {
  const auto wrong_gradient = [](float logprob, float proximal, float advantage, float mask) {
    const float ratio = std::exp(logprob - proximal);
    return -advantage * mask * ratio;
  };
  const Rows rows = Rows::padded(1, 2);
  const std::vector<std::uint8_t> mask = {1, 0};
  const std::vector<float> advantages = {1.0F, 1.0F};
  for (const float masked : {-1.0F, 1000.0F}) {
    const std::vector<float> logprobs = {-1.0F, masked};
    const std::vector<float> proximal = {-1.0F, -1.0F};
    PolicyLoss got;
    ASSERT_TRUE(ppo_actor_loss({}, {logprobs, proximal, {}, advantages, mask, &rows}, Statistics::kLeaveOut, got));
    EXPECT_EQ(got.gradient, (std::vector<float>{-1.0F, 0.0F}));
    EXPECT_EQ(std::isnan(wrong_gradient(masked, -1.0F, 1.0F, 0.0F)), masked > 0);
  }
}

TEST(PolicyLoss, EmptyMasksEmptyBatchesAndSingleTokensGiveNumbers) {
  for (const NamedLoss& loss : all_losses()) {
    Batch batch = random_batch({3, 5}, 2);
    batch.mask.assign(batch.tokens(), 0);
    const PolicyLoss masked = loss_of(loss, batch);
    EXPECT_EQ(masked.loss, 0.0F) << loss.name;
    EXPECT_EQ(masked.gradient, std::vector<float>(8, 0.0F)) << loss.name;
    const PolicyLoss nothing = loss_of(loss, random_batch({}, 2));
    EXPECT_EQ(nothing.loss, 0.0F) << loss.name;
    EXPECT_TRUE(nothing.gradient.empty()) << loss.name;
    Batch single = random_batch({1}, 3);
    single.mask = {1};
    single.proximal = single.old = single.logprobs;
    const PolicyLoss one = loss_of(loss, single);
    EXPECT_TRUE(std::isfinite(one.loss)) << loss.name;
    EXPECT_NEAR(one.gradient[0], -single.advantages[0], 1e-6F) << loss.name;  // At ratio 1, whatever the loss.
  }
}

// Rejection narrows the sum, never the divisor; dividing by what is kept would.
TEST(PolicyLoss, RejectionKeepsTheDivisor) {
  const Rows rows = Rows::padded(1, 4);
  const std::vector<float> logprobs = {-1.0F, -1.0F, -1.0F, -1.0F};
  const std::vector<float> old = {-1.0F, -3.0F, -1.0F, -3.0F};
  const std::vector<float> advantages = {1.0F, 1.0F, 3.0F, 1.0F};
  const std::vector<std::uint8_t> mask = {1, 1, 1, 1};
  PpoSettings settings;
  RejectionSettings below_two;
  below_two.upper = 2.0;
  settings.rejection = checked(below_two).value();
  PolicyLoss got;
  ASSERT_TRUE(ppo_actor_loss(settings, {logprobs, logprobs, old, advantages, mask, &rows}, Statistics::kFill, got));
  EXPECT_EQ(got.statistics.behaviour->kept, (std::vector<std::uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(got.loss, -1.0F);
  const float renormalised = -(1.0F + 3.0F) / 2;
  EXPECT_NE(got.loss, renormalised);
  EXPECT_EQ(got.gradient, (std::vector<float>{-0.25F, 0.0F, -0.75F, 0.0F}));
  // The mean of ratios is over the original mask: 1, not 1 - the filtered share.
  EXPECT_EQ(masked_mean(std::span<const float>(got.statistics.ratio), mask), 1.0);
}

TEST(PolicyLoss, RefusesWhatItCannotCompute) {
  const Batch batch = random_batch({4}, 5);
  const Rows rows = batch.rows();
  PolicyTokens packed = batch.view(rows);
  PolicyLoss into;
  PpoSettings sequences;
  sequences.level = RatioLevel::kSequence;
  packed.rows = nullptr;
  EXPECT_FALSE(ppo_actor_loss(sequences, packed, Statistics::kFill, into));
  EXPECT_FALSE(sapo_loss({1, 1, RatioLevel::kSequence}, packed, Statistics::kFill, into));
  EXPECT_TRUE(ppo_actor_loss({}, packed, Statistics::kFill, into));
  for (const double clip : {-0.1, static_cast<double>(kNan)}) {
    PpoSettings settings;
    settings.clip = clip;
    EXPECT_FALSE(ppo_actor_loss(settings, batch.view(rows), Statistics::kFill, into)) << clip;
    settings = {};
    settings.clip_higher = clip;
    EXPECT_FALSE(ppo_actor_loss(settings, batch.view(rows), Statistics::kFill, into)) << clip;
    EXPECT_FALSE(cispo_loss({clip, 0.28, {}}, batch.view(rows), Statistics::kFill, into)) << clip;
    CriticLoss critic;
    EXPECT_FALSE(critic_loss({clip}, {batch.logprobs, batch.old, batch.advantages, Mask(batch.mask)},
                             Statistics::kLeaveOut, critic));
    EXPECT_TRUE(critic_loss({0}, {batch.logprobs, batch.old, batch.advantages, Mask(batch.mask)}, Statistics::kLeaveOut,
                            critic));
  }
  for (const double dual : {1.0, 0.5, static_cast<double>(kNan)}) {
    PpoSettings settings;
    settings.dual_clip = dual;
    EXPECT_FALSE(ppo_actor_loss(settings, batch.view(rows), Statistics::kFill, into)) << dual;
  }
  // In fp32 some are 0 or infinite, and the gate would be a NaN at a ratio of 1.
  for (const double tau : {0.0, -1.0, 1e-50, 1e300, static_cast<double>(kInfinity), static_cast<double>(kNan)}) {
    EXPECT_FALSE(sapo_loss({tau, 1.0}, batch.view(rows), Statistics::kFill, into));
    EXPECT_FALSE(sapo_loss({1.0, tau}, batch.view(rows), Statistics::kFill, into));
  }
  for (const std::optional<double> higher : {std::optional<double>(), std::optional(0.0), std::optional(-1.0)}) {
    EXPECT_FALSE(cispo_loss({0.2, higher, {}}, batch.view(rows), Statistics::kFill, into));
  }
  PolicyTokens shorter = batch.view(rows);
  shorter.advantages = shorter.advantages.first(3);
  EXPECT_FALSE(ppo_actor_loss({}, shorter, Statistics::kFill, into));
  PolicyTokens without_old = batch.view(rows);
  without_old.old = {};
  PpoSettings rejecting;
  rejecting.rejection = RejectionSettings{};
  EXPECT_FALSE(ppo_actor_loss(rejecting, without_old, Statistics::kFill, into));
  EXPECT_FALSE(sapo_loss({}, without_old, Statistics::kFill, into));
}

TEST(PolicyLoss, StatisticsDoNotChangeTheResultAndMemoryIsReused) {
  const Batch batch = mixed_batch();
  const Rows rows = batch.rows();
  PolicyLoss filled;
  PolicyLoss lean;
  ASSERT_TRUE(ppo_actor_loss({}, batch.view(rows), Statistics::kFill, filled));
  ASSERT_TRUE(ppo_actor_loss({}, batch.view(rows), Statistics::kLeaveOut, lean));
  EXPECT_EQ(lean.gradient, filled.gradient);
  EXPECT_EQ(lean.loss, filled.loss);
  const float* const memory = lean.gradient.data();
  ASSERT_TRUE(ppo_actor_loss({}, batch.view(rows), Statistics::kLeaveOut, lean));
  EXPECT_EQ(lean.gradient.data(), memory);
}

TEST(CriticLoss, StatisticsThatAreLeftOutAreEmptied) {
  const Batch batch = mixed_batch();
  const ValueElements elements{batch.logprobs, batch.old, batch.advantages, batch.mask};
  CriticLoss into;
  ASSERT_TRUE(critic_loss({}, elements, Statistics::kFill, into));
  EXPECT_EQ(into.element_loss.size(), batch.tokens());
  ASSERT_TRUE(critic_loss({}, elements, Statistics::kLeaveOut, into));
  EXPECT_TRUE(into.element_loss.empty());
  EXPECT_TRUE(into.is_clipped.empty());
}

// One PolicyLoss for several losses: what the next one lacks, its statistics lack too.
TEST(PolicyLoss, NothingOfAnEarlierLossIsLeft) {
  const Batch batch = mixed_batch();
  const Rows rows = batch.rows();
  PolicyLoss into;
  const auto expect_none_of = [&](bool is_filled, const char* after) {
    const TokenStatistics& got = into.statistics;
    for (const auto* values : {&got.gate, &got.gate_of_gain, &got.gate_of_loss}) EXPECT_TRUE(values->empty()) << after;
    EXPECT_FALSE(got.behaviour) << after;
    const std::size_t length = is_filled ? batch.tokens() : 0;
    for (const auto* values : {&got.loss, &got.ratio, &got.log_ratio}) EXPECT_EQ(values->size(), length) << after;
    for (const auto* flags : {&got.is_clipped, &got.is_dual_clipped}) EXPECT_EQ(flags->size(), length) << after;
  };
  PpoSettings rejecting;
  rejecting.rejection = RejectionSettings{};
  for (const Statistics statistics : {Statistics::kFill, Statistics::kLeaveOut}) {
    const bool is_filled = statistics == Statistics::kFill;
    ASSERT_TRUE(sapo_loss({}, batch.view(rows), Statistics::kFill, into));
    ASSERT_TRUE(ppo_actor_loss({}, batch.view(rows), statistics, into));
    expect_none_of(is_filled, "SAPO, then PPO");
    ASSERT_TRUE(sapo_loss({}, batch.view(rows), Statistics::kFill, into));
    ASSERT_TRUE(cispo_loss({0.2, 0.28, {}}, batch.view(rows), statistics, into));
    expect_none_of(is_filled, "SAPO, then CISPO");
    ASSERT_TRUE(ppo_actor_loss(rejecting, batch.view(rows), Statistics::kFill, into));
    ASSERT_TRUE(into.statistics.behaviour);
    ASSERT_TRUE(ppo_actor_loss({}, batch.view(rows), statistics, into));
    expect_none_of(is_filled, "PPO with rejection, then PPO");
  }
}

// All that a kernel wrote: one number for the sum, then every float and flag.
struct KernelOutput {
  std::vector<double> sums;
  std::vector<float> floats;
  std::vector<std::uint8_t> flags;
  bool operator==(const KernelOutput&) const = default;
};

void run_kernel(const LossKernels& kernels, int kind, const TokenArrays& in, Statistics statistics, KernelOutput& all) {
  std::vector<std::vector<float>> floats(7, std::vector<float>(in.count));
  std::vector<std::vector<std::uint8_t>> flags(2, std::vector<std::uint8_t>(in.count));
  TokenResults out;
  if (statistics == Statistics::kFill) {
    out = {nullptr,         floats[1].data(), floats[2].data(), floats[3].data(), flags[0].data(),
           flags[1].data(), floats[4].data(), floats[5].data(), floats[6].data()};
  }
  out.gradient = floats[0].data();
  const RatioBand band{0.8F, 1.2F, true, 1.5F};
  if (kind == 0) all.sums.push_back(kernels.ppo(band, in, out));
  if (kind == 1) all.sums.push_back(kernels.cispo(band, in, out));
  if (kind == 2) all.sums.push_back(kernels.sapo({1.0F, 1.05F}, in, out));
  if (kind == 3) {
    all.sums.push_back(kernels.critic({0.2F, in.count % 2 == 0, 0.1F},
                                      {in.logprobs, in.base, in.advantages, in.kept, in.count, in.scale}, out));
  }
  for (const auto& written : floats) all.floats.insert(all.floats.end(), written.begin(), written.end());
  for (const auto& written : flags) all.flags.insert(all.flags.end(), written.begin(), written.end());
}

// Every length up to a few vectors, so that all tails are met; with and without weights and statistics, for those are
// forms of their own.
TEST(LossKernels, AllInstructionSetsGiveEqualBits) {
  const LossKernels* const avx2 = avx2_loss_kernels();
  if (avx2 == nullptr) GTEST_SKIP() << "no AVX2";
  for (std::size_t length = 0; length < 40; ++length) {
    const Batch batch = random_batch({length == 39 ? 5000 : length}, length);
    for (const float* const weights : {static_cast<const float*>(nullptr), batch.old.data()}) {
      for (const Statistics statistics : {Statistics::kLeaveOut, Statistics::kFill}) {
        const TokenArrays in{batch.logprobs.data(),   batch.proximal.data(),
                             batch.advantages.data(), batch.mask.data(),
                             batch.mask.data(),       weights,
                             batch.tokens(),          0.125F};
        for (int kind = 0; kind < 4; ++kind) {
          KernelOutput one;
          KernelOutput other;
          run_kernel(portable_loss_kernels(), kind, in, statistics, one);
          run_kernel(*avx2, kind, in, statistics, other);
          EXPECT_EQ(one, other) << "kernel " << kind << ", length " << length << ", weights " << (weights != nullptr)
                                << ", statistics " << (statistics == Statistics::kFill);
        }
      }
    }
    EXPECT_EQ(avx2->count(batch.mask.data(), batch.tokens()), count(batch.mask));
    EXPECT_EQ(portable_loss_kernels().count(batch.mask.data(), batch.tokens()), count(batch.mask));
  }
}

// One float at a time, as sequences are computed.
TEST(LossKernels, VectorsGiveTheBitsOfSingleFloats) {
  const Batch batch = random_batch({501}, 77);
  const Rows rows = batch.rows();
  PpoSettings settings;
  settings.dual_clip = 1.2;
  PolicyLoss got;
  ASSERT_TRUE(ppo_actor_loss(settings, batch.view(rows), Statistics::kFill, got));
  const float scale = static_cast<float>(1 / static_cast<double>(count(batch.mask)));
  double sum = 0;
  for (std::size_t at = 0; at < batch.tokens(); ++at) {
    if (batch.mask[at] == 0) continue;
    const float ratio = exp_of<float>(batch.logprobs[at] - batch.proximal[at]);
    const auto term = ppo_term<float>(ratio, batch.advantages[at], {0.8F, 1.2F, true, 1.2F});
    sum += static_cast<double>(term.loss);
    EXPECT_EQ(got.statistics.ratio[at], ratio) << at;
    EXPECT_EQ(got.statistics.loss[at], term.loss) << at;
    EXPECT_EQ(got.gradient[at], term.slope * ratio * scale) << at;
  }
  EXPECT_EQ(got.loss, static_cast<float>(sum / static_cast<double>(count(batch.mask))));
}

}  // namespace
}  // namespace areal::algo
