// Advantages by token and by turn.
#include "engine/algo/gae.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

struct Batch {
  Rows rows = Rows::padded(0, 0);
  std::vector<float> rewards, values;
  std::vector<std::uint8_t> trained;
  std::vector<std::int32_t> turn_ids;
  std::vector<float> bootstrap, decay;
  float discount = 0.97F;

  [[nodiscard]] GaeInput input() const { return {rows, rewards, values, trained, bootstrap, decay, discount}; }
};

struct Estimated {
  std::vector<float> advantages, returns;
};

Batch draw_batch(Rng& rng, Rows rows) {
  Batch batch;
  batch.rows = std::move(rows);
  const std::size_t elements = batch.rows.elements();
  batch.rewards = draw_values(rng, elements);
  batch.values = draw_values(rng, elements);
  batch.trained = draw_mask(rng, elements);
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    batch.bootstrap.push_back(draw_value(rng));
    batch.decay.push_back(std::abs(draw_value(rng)) / 4);
    std::int32_t turn = 0;
    for (std::size_t at = 0; at < batch.rows.length(row); ++at) {
      if (rng.draw_below(4) == 0 && turn + 2 < static_cast<std::int32_t>(batch.rows.length(row))) turn += 2;
      batch.turn_ids.push_back(turn);
    }
  }
  return batch;
}

Estimated by_token(const Batch& batch) {
  Estimated result{std::vector<float>(batch.rows.elements(), 99), std::vector<float>(batch.rows.elements(), 99)};
  gae_by_token(batch.input(), {result.advantages, result.returns});
  return result;
}

Estimated by_turn(const Batch& batch) {
  Estimated result{std::vector<float>(batch.rows.elements(), 99), std::vector<float>(batch.rows.elements(), 99)};
  EXPECT_TRUE(gae_by_turn(batch.input(), batch.turn_ids, {result.advantages, result.returns}));
  return result;
}

// The recursion as it is written down, one row after the other.
Estimated plain_by_token(const Batch& batch) {
  Estimated result{std::vector<float>(batch.rows.elements(), 0), batch.values};
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    float next_value = batch.bootstrap[row];
    float last = 0;
    for (std::size_t at = batch.rows.end(row); at-- > batch.rows.begin(row);) {
      if (at + 1 == batch.rows.end(row)) continue;
      const float delta = batch.rewards[at] + batch.discount * next_value - batch.values[at];
      const float fresh = delta + batch.decay[row] * last;
      if (batch.trained[at] != 0) {
        next_value = batch.values[at];
        last = fresh;
      }
      result.advantages[at] = last;
      result.returns[at] = last + batch.values[at];
    }
  }
  return result;
}

Rows draw_packed(Rng& rng, std::size_t count, std::int64_t longest) {
  std::vector<std::int32_t> bounds{0};
  for (std::size_t row = 0; row < count; ++row) {
    bounds.push_back(bounds.back() + static_cast<std::int32_t>(draw_between(rng, 0, longest)));
  }
  return Rows::packed(bounds);
}

// Lanes of rows must round as single rows do, whatever the number of rows and their lengths.
TEST(GaeByToken, IsThePlainRecursionBitForBit) {
  Rng rng(1);
  for (std::size_t count = 0; count < 20; ++count) {
    for (const std::size_t width : {1U, 2U, 4U, 5U, 8U, 9U, 33U, 1030U}) {
      const Batch batch = draw_batch(rng, Rows::padded(count, width));
      EXPECT_EQ(by_token(batch).advantages, plain_by_token(batch).advantages) << count << "x" << width;
      EXPECT_EQ(by_token(batch).returns, plain_by_token(batch).returns) << count << "x" << width;
    }
    Rows uneven = draw_packed(rng, count, 40);
    const Batch packed = draw_batch(rng, std::move(uneven));
    EXPECT_EQ(by_token(packed).advantages, plain_by_token(packed).advantages) << count;
    EXPECT_EQ(by_token(packed).returns, plain_by_token(packed).returns) << count;
  }
}

TEST(GaeByToken, KnownValues) {
  Batch batch;
  batch.rows = Rows::padded(2, 4);
  batch.rewards = {0, 0, 1, 0, 0, 0, 1, 0};
  batch.values.assign(8, 0);
  batch.trained.assign(8, 1);
  batch.bootstrap = {0, 0};
  batch.discount = 1;
  batch.decay = decays(1, std::vector<float>{0.5F, 0.0F});
  EXPECT_EQ(by_token(batch).advantages, (std::vector<float>{0.25F, 0.5F, 1, 0, 0, 0, 1, 0}));
}

// What is not trained may hold anything: only its own return shows its value.
TEST(Gae, NothingThatIsMaskedLeaks) {
  Rng rng(2);
  for (int round = 0; round < 50; ++round) {
    Rows rows = draw_packed(rng, 9, 30);
    const Batch clean = draw_batch(rng, std::move(rows));
    Batch bad = clean;
    spoil(bad.rewards, bad.trained);
    spoil(bad.values, bad.trained);
    for (std::size_t at = 0; at < bad.turn_ids.size(); ++at) {
      if (bad.trained[at] == 0) bad.turn_ids[at] = at % 2 == 0 ? -7 : 1'000'000;
    }
    EXPECT_EQ(by_token(bad).advantages, by_token(clean).advantages);
    EXPECT_EQ(by_turn(bad).advantages, by_turn(clean).advantages);
    const Estimated turns = by_turn(bad), wanted = by_turn(clean);
    for (std::size_t at = 0; at < bad.trained.size(); ++at) {
      if (bad.trained[at] == 0) continue;
      EXPECT_EQ(turns.returns[at], wanted.returns[at]);
    }
  }
}

// The masking by multiplication that must be told apart from ours: it makes NaN of all that comes before.
TEST(Gae, MaskingByMultiplicationWouldLeak) {
  Batch batch;
  batch.rows = Rows::padded(1, 3);
  batch.rewards = {1, kNan, 0};
  batch.values = {0, 0, 0};
  batch.trained = {1, 0, 0};
  batch.bootstrap = {0};
  batch.decay = {1};
  const auto mask = static_cast<float>(batch.trained[1]);
  const float multiplied = 0.0F * (1 - mask) + batch.rewards[1] * mask;
  EXPECT_TRUE(std::isnan(multiplied));
  EXPECT_EQ(by_token(batch).advantages, (std::vector<float>{1, 0, 0}));
}

// The same rows in a wider batch, in another order, or in several calls.
TEST(Gae, RowsDoNotSeePaddingOrderOrEachOther) {
  Rng rng(3);
  constexpr std::size_t kRows = 11;
  constexpr std::size_t kWidth = 13;
  constexpr std::size_t kWide = 18;
  const Batch batch = draw_batch(rng, Rows::padded(kRows, kWidth));
  Batch wide = batch;
  wide.rows = Rows::padded(kRows, kWide);
  Batch narrow = batch;
  for (std::size_t row = 0; row < kRows; ++row) narrow.trained[(row + 1) * kWidth - 1] = 0;
  const auto widened = [&](auto& flat, auto filler) {
    auto out = flat;
    out.assign(kRows * kWide, filler);
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto reversed = kRows - 1 - row;
      std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>(row * kWidth), kWidth,
                  out.begin() + static_cast<std::ptrdiff_t>(reversed * kWide));
    }
    flat = out;
  };
  wide.trained = narrow.trained;
  widened(wide.rewards, kNan);
  widened(wide.values, 0.0F);
  widened(wide.trained, std::uint8_t{0});
  widened(wide.turn_ids, -1);
  std::ranges::reverse(wide.bootstrap);
  std::ranges::reverse(wide.decay);
  const Estimated token = by_token(narrow), wide_token = by_token(wide);
  const Estimated turn = by_turn(narrow), wide_turn = by_turn(wide);
  for (std::size_t row = 0; row < kRows; ++row) {
    Batch alone;
    alone.rows = Rows::padded(1, kWidth);
    const auto cut = [&](const auto& flat) {
      return std::decay_t<decltype(flat)>(flat.begin() + static_cast<std::ptrdiff_t>(row * kWidth),
                                          flat.begin() + static_cast<std::ptrdiff_t>((row + 1) * kWidth));
    };
    alone.rewards = cut(narrow.rewards), alone.values = cut(narrow.values), alone.trained = cut(narrow.trained);
    alone.bootstrap = {narrow.bootstrap[row]}, alone.decay = {narrow.decay[row]};
    EXPECT_EQ(by_token(alone).advantages, cut(token.advantages));
    for (std::size_t at = 0; at < kWidth; ++at) {
      const std::size_t there = (kRows - 1 - row) * kWide + at;
      EXPECT_EQ(token.advantages[row * kWidth + at], wide_token.advantages[there]);
      EXPECT_EQ(turn.advantages[row * kWidth + at], wide_turn.advantages[there]);
    }
  }
}

TEST(GaeByTurn, GapsBootstrapAndFirstValue) {
  Batch batch;
  batch.rows = Rows::padded(1, 5);
  batch.rewards = {0, 3, 0, 0, 4};
  batch.values = {1, 5, 9, 2, 8};
  batch.trained = {1, 1, 0, 1, 1};
  batch.turn_ids = {0, 0, -1, 2, 2};
  batch.discount = 0.5F;
  batch.decay = decays(0.5, 0.25, 1);
  batch.bootstrap = bootstraps(batch.rows, batch.values, std::vector<std::uint8_t>{1}).value();
  EXPECT_EQ(by_turn(batch).advantages, (std::vector<float>{3.75F, 3.75F, 0, 6, 6}));
  EXPECT_EQ(by_turn(batch).returns, (std::vector<float>{4.75F, 4.75F, 9, 8, 8}));
}

TEST(GaeByTurn, OneAdvantageForAllTokensOfATurn) {
  Rng rng(4);
  Rows rows = draw_packed(rng, 20, 30);
  const Batch batch = draw_batch(rng, std::move(rows));
  const Estimated result = by_turn(batch);
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    for (std::size_t at = batch.rows.begin(row); at < batch.rows.end(row); ++at) {
      if (batch.trained[at] == 0) {
        EXPECT_EQ(result.advantages[at], 0);
      }
      for (std::size_t other = at; other < batch.rows.end(row); ++other) {
        if (batch.trained[at] == 0 || batch.trained[other] == 0 || batch.turn_ids[at] != batch.turn_ids[other])
          continue;
        EXPECT_EQ(result.advantages[at], result.advantages[other]);
      }
    }
  }
}

TEST(GaeByTurn, RefusesIdsThatAreNoTurns) {
  Batch batch;
  batch.rows = Rows::padded(1, 4);
  batch.rewards.assign(4, 0), batch.values.assign(4, 0), batch.trained.assign(4, 1);
  batch.bootstrap = {0}, batch.decay = {1};
  const auto refused = [&](std::vector<std::int32_t> ids) {
    std::vector<float> advantages(4), returns(4);
    const Status status = gae_by_turn(batch.input(), ids, {advantages, returns});
    return status ? std::string() : status.error().detail;
  };
  batch.trained[0] = 1;
  EXPECT_NE(refused({-1, 0, 0, 1}).find("non-negative"), std::string::npos);
  EXPECT_NE(refused({0, 0, 4, 4}).find("smaller than the sequence length"), std::string::npos);
  EXPECT_NE(refused({0, 1, 0, 2}).find("nondecreasing"), std::string::npos);
  EXPECT_NE(refused({0, 0, 0}).find("elements"), std::string::npos);
  EXPECT_EQ(refused({0, 0, 1, 3}), "");
}

TEST(Gae, EmptyBatchesAndMasks) {
  Batch batch;
  EXPECT_TRUE(by_token(batch).advantages.empty());
  EXPECT_TRUE(by_turn(batch).advantages.empty());
  Rng rng(5);
  batch = draw_batch(rng, Rows::padded(3, 7));
  batch.trained.assign(21, 0);
  EXPECT_EQ(by_token(batch).advantages, std::vector<float>(21, 0));
  EXPECT_EQ(by_turn(batch).returns, batch.values);
  EXPECT_FALSE(bootstraps(Rows::padded(2, 0), {}, std::vector<std::uint8_t>{0, 0}));
}

// An ended row's last value is padding, which may hold anything.
TEST(Gae, BootstrapReadsCutOffRowsAlone) {
  const std::vector<float> values = {1, kNan, 2, 3};
  EXPECT_EQ(bootstraps(Rows::padded(2, 2), values, std::vector<std::uint8_t>{0, 1}).value(),
            (std::vector<float>{0, 3}));
}

}  // namespace
}  // namespace areal::algo
