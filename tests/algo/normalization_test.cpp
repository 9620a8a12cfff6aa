// Rewards and advantages centred and scaled.
#include "engine/algo/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/algo/masked_normalization.h"
#include "engine/algo/usable_group.h"
#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

constexpr NormLevel kLevels[] = {NormLevel::kNone, NormLevel::kBatch, NormLevel::kGroup};

struct Batch {
  Rows rows = Rows::padded(0, 0);
  std::vector<float> x;
  std::vector<std::uint8_t> mask;
  std::vector<std::int64_t> sizes;

  [[nodiscard]] NormBatch view() const { return {rows, x, Mask(mask), std::span<const std::int64_t>(sizes)}; }
};

Batch draw_batch(Rng& rng, std::vector<std::int64_t> sizes, std::size_t width) {
  Batch batch;
  const auto rows = static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  batch.rows = Rows::padded(rows, width);
  batch.x = draw_values(rng, rows * width);
  batch.mask = draw_mask(rng, rows * width);
  batch.mask[0] = 1;
  batch.sizes = std::move(sizes);
  return batch;
}

template <class Visit>
void for_each_config(Visit visit) {
  for (const NormLevel mean : kLevels) {
    for (const NormLevel deviation : kLevels) {
      for (const bool leave_one_out : {false, true}) {
        for (const bool unbiased : {false, true}) visit(NormConfig{mean, deviation, leave_one_out, unbiased, 1e-5, 1});
      }
    }
  }
}

std::vector<float> normalized(const NormConfig& config, const Batch& batch) {
  auto out = normalize(config, batch.view());
  EXPECT_TRUE(out) << out.error().detail;
  return out ? *out : std::vector<float>();
}

TEST(Normalization, IsFiniteAndZeroWhereMasked) {
  Rng rng(1);
  for_each_config([&](const NormConfig& config) {
    const Batch batch = draw_batch(rng, {3, 1, 2, 5}, 6);
    const auto out = normalized(config, batch);
    for (std::size_t at = 0; at < out.size(); ++at) {
      EXPECT_TRUE(std::isfinite(out[at]));
      if (batch.mask[at] == 0) {
        EXPECT_EQ(out[at], 0);
      }
    }
  });
}

TEST(Normalization, NothingThatIsMaskedLeaks) {
  Rng rng(2);
  for_each_config([&](const NormConfig& config) {
    const Batch clean = draw_batch(rng, {3, 1, 2, 5}, 6);
    Batch bad = clean;
    spoil(bad.x, bad.mask);
    EXPECT_EQ(normalized(config, bad), normalized(config, clean));
  });
}

// Values are exact in double, so that sums do not depend on how they are cut.
TEST(Normalization, DoesNotSeePaddingOrder) {
  Rng rng(3);
  for_each_config([&](const NormConfig& config) {
    const Batch batch = draw_batch(rng, {2, 3}, 4);
    Batch turned;
    turned.rows = Rows::padded(5, 7);
    turned.x.assign(35, kNan);
    turned.mask.assign(35, 0);
    turned.sizes = {3, 2};
    const std::size_t order[] = {2, 4, 3, 1, 0};
    for (std::size_t row = 0; row < 5; ++row) {
      for (std::size_t at = 0; at < 4; ++at) {
        turned.x[row * 7 + at] = batch.x[order[row] * 4 + at];
        turned.mask[row * 7 + at] = batch.mask[order[row] * 4 + at];
      }
    }
    const auto out = normalized(config, batch);
    const auto there = normalized(config, turned);
    for (std::size_t row = 0; row < 5; ++row) {
      for (std::size_t at = 0; at < 4; ++at) {
        EXPECT_NEAR(there[row * 7 + at], out[order[row] * 4 + at], 1e-6) << row << " " << at;
      }
    }
  });
}

// Ranks add up totals and then squares; the result is that of one rank with all rows.
TEST(Normalization, RanksTogetherDoWhatOneDoes) {
  Rng rng(4);
  for_each_config([&](const NormConfig& config) {
    const Batch whole = draw_batch(rng, {2, 3, 1, 4}, 5);
    Batch parts[2];
    for (std::size_t part = 0; part < 2; ++part) {
      parts[part].rows = Rows::padded(5, 5);
      const auto begin = static_cast<std::ptrdiff_t>(part * 25);
      parts[part].x.assign(whole.x.begin() + begin, whole.x.begin() + begin + 25);
      parts[part].mask.assign(whole.mask.begin() + begin, whole.mask.begin() + begin + 25);
      parts[part].mask[0] = whole.mask[part * 25];
    }
    parts[0].sizes = {2, 3};
    parts[1].sizes = {1, 4};
    NormTotals totals;
    for (const Batch& part : parts) {
      const NormTotals own = norm_totals(part.view());
      totals = {totals.sum + own.sum, totals.count + own.count};
    }
    double squares = 0;
    for (const Batch& part : parts) squares += norm_squares(config, part.view(), totals).value();
    std::vector<float> together;
    for (const Batch& part : parts) {
      const auto out = normalize(config, part.view(), totals, squares).value();
      together.insert(together.end(), out.begin(), out.end());
    }
    const auto alone = normalized(config, whole);
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t at = 0; at < alone.size(); ++at) EXPECT_NEAR(together[at], alone[at], 1e-6);
  });
}

TEST(Normalization, GroupsDoNotSeeEachOther) {
  Rng rng(5);
  for_each_config([&](const NormConfig& config) {
    if (config.mean_level == NormLevel::kBatch || config.std_level == NormLevel::kBatch) return;
    const Batch batch = draw_batch(rng, {3, 2}, 4);
    Batch other = batch;
    for (std::size_t at = 12; at < other.x.size(); ++at) other.x[at] *= 100;
    const auto out = normalized(config, batch);
    const auto there = normalized(config, other);
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + 12, there.begin()));
  });
}

TEST(Normalization, CentredGroupsHaveMeanZeroAndALoneRowBecomesZero) {
  Rng rng(6);
  for (const bool leave_one_out : {false, true}) {
    const NormConfig config{NormLevel::kGroup, NormLevel::kNone, leave_one_out, true, 1e-5, 1};
    const Batch batch = draw_batch(rng, {1, 4, 1}, 1);
    const auto out = normalized(config, batch);
    EXPECT_EQ(out[0], 0);
    EXPECT_EQ(out[5], 0);
    EXPECT_NEAR(out[1] + out[2] + out[3] + out[4], 0, 1e-5);
  }
}

TEST(Normalization, LoneElementOfABatchPassesThroughLeavingOneOut) {
  const Rows rows = Rows::padded(1, 1);
  const std::vector<float> x = {5};
  const NormConfig config{NormLevel::kBatch, NormLevel::kNone, true, true, 1e-5, 1};
  EXPECT_EQ(normalize(config, {rows, x, {}, {}}).value(), x);
}

TEST(Normalization, BiasedAndUnbiasedDiffer) {
  const Rows rows = Rows::padded(3, 1);
  const std::vector<float> x = {1, 2, 3};
  NormConfig config;
  const auto unbiased = normalize(config, {rows, x, {}, {}}).value();
  config.unbiased = false;
  const auto biased = normalize(config, {rows, x, {}, {}}).value();
  EXPECT_NEAR(biased[2] / unbiased[2], std::sqrt(1.5), 1e-4);
}

TEST(Normalization, NothingKeptComesBackUnchanged) {
  const Rows rows = Rows::padded(1, 2);
  const std::vector<float> x = {1, 2};
  const std::vector<std::uint8_t> none = {0, 0};
  EXPECT_EQ(normalize({}, {rows, x, Mask(none), {}}).value(), x);
  EXPECT_TRUE(normalize({}, {Rows::padded(0, 4), {}, {}, {}}).value().empty());
}

// Without sizes the reference leaves rows behind the last whole group at x / eps: a hundred thousand times too large.
TEST(Normalization, RowsWithoutAGroupAreRefused) {
  const Rows rows = Rows::padded(5, 1);
  const std::vector<float> x = {1, 2, 3, 4, 9};
  NormConfig config{NormLevel::kGroup, NormLevel::kGroup, false, true, 1e-5, 2};
  const auto refused = normalize(config, {rows, x, {}, {}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("divisible"), std::string::npos);
  const std::vector<std::int64_t> sizes = {2, 3};
  for (const float value : normalize(config, {rows, x, {}, std::span<const std::int64_t>(sizes)}).value()) {
    EXPECT_LT(std::abs(value), 2);
  }
}

TEST(Normalization, RefusesSizesThatAreNotThoseOfTheBatch) {
  const Rows rows = Rows::padded(4, 1);
  const std::vector<float> x = {1, 2, 3, 4};
  NormConfig config{NormLevel::kGroup, NormLevel::kNone, false, true, 1e-5, 1};
  const auto refused = [&](std::vector<std::int64_t> sizes) {
    return !normalize(config, {rows, x, {}, std::span<const std::int64_t>(sizes)});
  };
  EXPECT_TRUE(refused({2, 1}));
  EXPECT_TRUE(refused({2, 3}));
  EXPECT_TRUE(refused({4, 0}));
  EXPECT_TRUE(refused({-1, 5}));
  EXPECT_FALSE(refused({1, 3}));
  config.mean_level = NormLevel::kBatch;
  EXPECT_FALSE(refused({2, 1}));  // Nobody asks for groups.
  config.std_level = NormLevel::kGroup;
  config.group_size = 0;
  EXPECT_FALSE(check(config));
}

TEST(Normalization, ExtremeValuesStayFinite) {
  const Rows rows = Rows::padded(4, 1);
  for (const float scale : {1e-6F, 1e6F, 1e30F}) {
    const std::vector<float> x = {scale, -scale, 2 * scale, 0};
    for_each_config([&](NormConfig config) {
      config.group_size = 2;
      const auto out = normalize(config, {rows, x, {}, {}});
      for (const float value : out.value()) EXPECT_TRUE(std::isfinite(value));
    });
  }
}

TEST(UsableGroup, TheLeastNumber) {
  const auto least = [](UsableGroupRule rule) { return min_usable_group_size(rule); };
  EXPECT_EQ(least({std::nullopt, true, 4, false}).value(), 2);
  EXPECT_EQ(least({std::nullopt, true, 1, false}).value(), 1);
  EXPECT_EQ(least({std::nullopt, false, 4, false}).value(), 1);
  EXPECT_EQ(least({3, true, 4, false}).value(), 3);
  EXPECT_FALSE(least({1, true, 4, false}));
  EXPECT_FALSE(least({0, false, 4, false}));
  EXPECT_FALSE(least({2, false, 4, true}));
  // More than the group has: found here, not when the first group is built.
  EXPECT_FALSE(least({5, true, 4, false}));
  EXPECT_FALSE(least({2, false, 1, false}));
}

// The difference of two rounded means may be below 0, and its root a NaN.
TEST(MaskedNormalization, EqualValuesHaveNoSpread) {
  int wrong = 0;
  for (std::size_t size = 2; size < 500; ++size) {
    const std::vector<float> x(size, 0.1F + 0.001F * static_cast<float>(size));
    double sum = 0;
    double squares = 0;
    for (const float value : x) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const double mean = sum / static_cast<double>(size);
    if (squares / static_cast<double>(size) - mean * mean < 0) ++wrong;
    const std::vector<std::size_t> shape = {size};
    for (const bool unbiased : {false, true}) {
      MaskedNorm norm;
      norm.unbiased = unbiased;
      for (const float value : masked_normalize(norm, shape, x, {}).value()) ASSERT_NEAR(value, 0, 1e-6) << size;
    }
  }
  EXPECT_GT(wrong, 0) << "the wrong form is not told apart";
}

TEST(MaskedNormalization, DimensionsAndMasks) {
  const std::vector<std::size_t> shape = {2, 3};
  std::vector<float> x = {1, 2, 3, 10, 20, kNan};
  const std::vector<std::uint8_t> mask = {1, 1, 1, 1, 1, 0};
  MaskedNorm norm;
  norm.dims = std::vector<std::size_t>{1};
  const auto out = masked_normalize(norm, shape, x, Mask(mask)).value();
  EXPECT_NEAR(out[0], -1.2247, 1e-3);
  EXPECT_NEAR(out[3], -1, 1e-3);
  EXPECT_NEAR(out[5], -3, 1e-3);  // (0 - 15) / 5: the dropped element counts as 0.
  norm.dims = std::vector<std::size_t>{2};
  EXPECT_FALSE(masked_normalize(norm, shape, x, Mask(mask)));
}

}  // namespace
}  // namespace areal::algo
