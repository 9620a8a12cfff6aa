// The kernels of all instruction sets and any number of threads against each other and the functions they stand for.
#include "engine/delta/cpu/change_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/rng.h"
#include "engine/delta/adamw.h"

namespace areal::delta {
namespace {

struct Data {
  std::vector<float> weights;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;

  [[nodiscard]] OptimizerSpans spans(std::size_t skip, std::size_t count, std::uint64_t first_index = 0) const {
    return {std::span(weights).subspan(skip, count), std::span(exp_avg).subspan(skip, count),
            std::span(exp_avg_sq).subspan(skip, count), first_index};
  }
};

float any_float(Rng& rng) { return std::bit_cast<float>(static_cast<std::uint32_t>(rng.draw_u64() >> 32)); }

// NaNs whose rounding would run over the sign, infinities, zeros and their neighbours, and values around the bounds of
// what is covered.
constexpr std::uint32_t kSpecial[] = {0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7F800000, 0xFF800000, 0,
                                      0x80000000, 1,          0x80000001, 0x7F7FFFFF, 0x00800000, 0x3F808000,
                                      0x3F800000, 0x71800000, 0x71800001, 0x17800000, 0x177FFFFF};

// Weights around 0.01 that the step moved a little, and between them, one in so many, bit patterns of every kind.
// Kernels treat stretches without any of them in another way.
Data make_data(std::size_t count, std::uint64_t seed, std::uint64_t odd_one_in) {
  Rng rng(seed);
  Data data;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_odd = rng.draw_chance(1, odd_one_in);
    const float sign = rng.draw_chance(1, 2) ? 1.0F : -1.0F;
    const auto size = static_cast<std::uint32_t>(0x3C000000 + rng.draw_below(0x01000000));
    const auto moment = static_cast<float>(1 + rng.draw_below(1000)) * 1e-7F;
    const auto scale = static_cast<float>(500 + rng.draw_below(1000)) * 1e-3F;
    data.weights.push_back(is_odd && rng.draw_chance(1, 2) ? any_float(rng) : sign * std::bit_cast<float>(size));
    data.exp_avg.push_back(is_odd && rng.draw_chance(1, 2) ? any_float(rng) : sign * moment);
    data.exp_avg_sq.push_back(is_odd && rng.draw_chance(1, 2) ? any_float(rng) : moment * moment * scale);
  }
  const auto special = [&] { return std::bit_cast<float>(kSpecial[rng.draw_below(std::size(kSpecial))]); };
  for (std::size_t i = 0; i + 2 < count; ++i) {
    if (rng.draw_chance(1, 4 * odd_one_in)) data.weights[i] = special();
    if (rng.draw_chance(1, 4 * odd_one_in)) data.exp_avg[i + 1] = special();
    if (rng.draw_chance(1, 4 * odd_one_in)) data.exp_avg_sq[i + 2] = special();
    if (rng.draw_chance(1, 16 * odd_one_in)) {
      data.weights[i] = special();
      data.exp_avg[i] = rng.draw_chance(1, 2) ? 0.0F : -0.0F;
    }
  }
  return data;
}

std::vector<ChangeRule> all_rules() {
  std::vector<ChangeRule> rules;
  for (const double decay : {0.0, 0.01, 0.5}) {
    const AdamWSettings settings{.learning_rate = 1e-5, .weight_decay = decay, .beta2 = 0.95};
    for (const bool keeps_zeros : {false, true}) {
      ProvenStep step = proven_step(settings, 100);
      step.keeps_zeros = keeps_zeros;
      rules.push_back(ChangeRule::proven(step));
    }
    rules.push_back(ChangeRule::margin(inversion_scalars(settings, 100)));
    rules.push_back(ChangeRule::margin(inversion_scalars(settings, 100), 0.5F));
  }
  rules.push_back(ChangeRule::proven({.learning_rate = 1e-5, .epsilon = 1e-15, .bc1 = 0.5, .bc2 = 0.5, .t = 7}));
  rules.push_back(ChangeRule::proven({.learning_rate = -1.0}));
  return rules;
}

template <class Index>
FoundChanges<Index> expected(const ChangeRule& rule, const OptimizerSpans& spans) {
  FoundChanges<Index> set;
  for (std::size_t i = 0; i < spans.weights.size(); ++i) {
    const std::uint16_t now = to_bf16(spans.weights[i]);
    const float m = spans.exp_avg[i];
    const float v = spans.exp_avg_sq[i];
    const bool is_marked =
        rule.is_proven() ? must_mark(proven_interval(rule.proven_scalars(), spans.weights[i], m, v), now)
                         : bf16_changed(invert_adamw(rule.inversion(), spans.weights[i], m, v), now, rule.margin_rel());
    if (!is_marked) continue;
    set.indices.push_back(static_cast<Index>(spans.first_index + i));
    set.values.push_back(now);
  }
  return set;
}

std::vector<InstructionSet> all_sets() {
  std::vector<InstructionSet> sets;
  for (const auto set : {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (has_instructions(set)) sets.push_back(set);
  }
  return sets;
}

template <class Index>
void expect_equal(const ChangeRule& rule, const OptimizerSpans& spans, std::uint32_t threads = 1) {
  const FoundChanges<Index> wanted = expected<Index>(rule, spans);
  for (const InstructionSet set : all_sets()) {
    ChangeFinder finder({.threads = threads, .instructions = set});
    FoundChanges<Index> found;
    finder.find(rule, spans, found);
    EXPECT_EQ(found.indices, wanted.indices) << name_of(set) << " " << spans.weights.size();
    EXPECT_EQ(found.values, wanted.values) << name_of(set) << " " << spans.weights.size();
  }
}

TEST(ChangeFinder, EveryInstructionSetGivesEqualBits) {
  const Data data = make_data(20'000, 1, 4);
  for (const ChangeRule& rule : all_rules()) {
    expect_equal<std::int32_t>(rule, data.spans(0, 20'000));
    for (const std::uint64_t one_in : {300, 3000, 1'000'000'000}) {
      expect_equal<std::int32_t>(rule, make_data(20'000, one_in, one_in).spans(1, 19'999));
    }
  }
  // Two of the rules mark by what is there: neither all nor nothing.
  const auto found = expected<std::int32_t>(all_rules()[0], data.spans(0, 20'000));
  EXPECT_GT(found.indices.size(), 1000U);
  EXPECT_LT(found.indices.size(), 19'000U);
}

// Every combination of special values, each alone among usual ones: kernels must notice it there.
TEST(ChangeFinder, OneOddElementIsNoticed) {
  constexpr std::size_t kApart = 256;
  constexpr std::size_t kSpecials = std::size(kSpecial);
  Data data = make_data(kApart * kSpecials * kSpecials * kSpecials, 5, 1'000'000'000);
  for (std::size_t i = 0; i * kApart < data.weights.size(); ++i) {
    const std::size_t at = i * kApart + i % kApart;
    data.weights[at] = std::bit_cast<float>(kSpecial[i % kSpecials]);
    data.exp_avg[at] = std::bit_cast<float>(kSpecial[i / kSpecials % kSpecials]);
    data.exp_avg_sq[at] = std::bit_cast<float>(kSpecial[i / kSpecials / kSpecials]);
  }
  const std::vector<ChangeRule> rules = all_rules();
  for (const std::size_t rule : {std::size_t{1}, std::size_t{5}, rules.size() - 2}) {
    expect_equal<std::int32_t>(rules[rule], data.spans(0, data.weights.size()));
  }
}

TEST(ChangeFinder, EverySizeAndAlignment) {
  const Data data = make_data(5000, 2, 300);
  const std::vector<ChangeRule> rules = all_rules();
  for (std::size_t count = 0; count < 70; ++count) {
    for (const std::size_t skip : {0, 1, 7}) expect_equal<std::int32_t>(rules[2], data.spans(skip, count));
    expect_equal<std::int64_t>(rules[3], data.spans(count % 16, count));
  }
  for (const std::size_t count : {2047, 2048, 2049, 4096, 4111}) {
    for (const ChangeRule& rule : rules) expect_equal<std::int32_t>(rule, data.spans(3, count));
  }
}

TEST(ChangeFinder, IndicesBeyond31Bits) {
  const Data data = make_data(4100, 3, 4);
  const ChangeRule rule = all_rules()[0];
  constexpr std::uint64_t kEdge = 1ULL << 31;
  expect_equal<std::int64_t>(rule, data.spans(0, 4100, kEdge - 2000));
  expect_equal<std::int64_t>(rule, data.spans(0, 4100, (1ULL << 40) + 1));
  expect_equal<std::int32_t>(rule, data.spans(0, 4100, kEdge - 4100));  // The last one is 2^31 - 1.
  ChangeFinder finder;
  FoundChanges<std::int32_t> found;
  EXPECT_DEATH(finder.find(rule, data.spans(0, 4100, kEdge - 4099), found), "most");
}

TEST(ChangeFinder, ThreadsChangeNothing) {
  constexpr std::size_t kCount = (1 << 20) + 12'345;
  const Data data = make_data(kCount, 4, 3000);
  for (const ChangeRule& rule : {all_rules()[0], all_rules()[2]}) {
    ChangeFinder single;
    FoundChanges<std::int64_t> wanted;
    single.find(rule, data.spans(0, kCount), wanted);
    EXPECT_TRUE(std::ranges::is_sorted(wanted.indices));
    for (const std::uint32_t threads : {2U, 3U, 4U, 64U}) {
      ChangeFinder finder({.threads = threads});
      FoundChanges<std::int64_t> found;
      // Twice: what is kept between calls must not show.
      for (int i = 0; i < 2; ++i) finder.find(rule, data.spans(0, kCount), found);
      EXPECT_EQ(found.indices, wanted.indices) << threads;
      EXPECT_EQ(found.values, wanted.values) << threads;
    }
  }
}

}  // namespace
}  // namespace areal::delta
