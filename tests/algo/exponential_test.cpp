// The polynomial exp() against the library's.
#include "engine/algo/exponential.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace areal::algo {
namespace {

// How many fp32 neighbours apart; results are never negative.
std::int64_t neighbours(float a, float b) {
  return std::abs(std::int64_t{std::bit_cast<std::int32_t>(a)} - std::int64_t{std::bit_cast<std::int32_t>(b)});
}

TEST(Exponential, IsWithinOneNeighbourOfTheTruthFromZeroToInfinity) {
  std::int64_t most = 0;
  // From 2^-31 to 128, every 37th float, both signs.
  for (std::uint32_t bits = 0x30000000; bits < 0x43000000; bits += 37) {
    const float x = std::bit_cast<float>(bits);
    for (const float value : {x, -x}) {
      const float truth = static_cast<float>(std::exp(static_cast<double>(value)));
      most = std::max(most, neighbours(exp_of<float>(value), truth));
      if (most > 1) FAIL() << value << ": " << exp_of<float>(value) << " is not " << truth;
    }
  }
  EXPECT_EQ(most, 1);
}

TEST(Exponential, HasTheLibrarysLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_of<float>(0.0F), 1.0F);
  EXPECT_EQ(exp_of<float>(-0.0F), 1.0F);
  EXPECT_EQ(exp_of<float>(kInfinity), kInfinity);
  EXPECT_EQ(exp_of<float>(-kInfinity), 0.0F);
  EXPECT_EQ(exp_of<float>(88.72F), std::exp(88.72F));
  EXPECT_EQ(exp_of<float>(88.73F), kInfinity);
  EXPECT_EQ(exp_of<float>(-103.0F), std::exp(-103.0F));
  EXPECT_GT(exp_of<float>(-103.0F), 0.0F);
  EXPECT_EQ(exp_of<float>(-104.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exp_of<float>(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp_of<float>(-std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(exp_of<double>(1.5), std::exp(1.5));
}

// A ratio exactly at a bound stays inside it.
TEST(Exponential, OfLogTwoIsTwo) { EXPECT_EQ(exp_of<float>(std::log(2.0F)), 2.0F); }

}  // namespace
}  // namespace areal::algo
