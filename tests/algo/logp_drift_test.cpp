// How far the policy has moved.
#include "engine/algo/logp_drift.h"

#include <gtest/gtest.h>

#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

using Kept = std::vector<std::uint8_t>;

TEST(LogpDrift, WhatIsMaskedIsNotRead) {
  const LogpDrift drift = logp_drift(std::vector{-1.0F, kNan}, std::vector{-2.0F, kNan}, Kept{1, 0});
  EXPECT_EQ(drift.difference, (std::vector<float>{1.0F, 0.0F}));
  EXPECT_EQ(drift.mean, 1.0);
  EXPECT_EQ(drift.mean_absolute, 1.0);
}

// A signed mean hides what goes both ways; the absolute one does not.
TEST(LogpDrift, SignedAndAbsoluteAreToldApart) {
  const LogpDrift drift = logp_drift(std::vector{-1.0F, -1.0F}, std::vector{-2.0F, 0.0F}, Kept{1, 1});
  EXPECT_EQ(drift.mean, 0.0);
  EXPECT_EQ(drift.mean_absolute, 1.0);
}

TEST(LogpDrift, NothingIsZero) {
  EXPECT_EQ(logp_drift({}, {}, {}).mean, 0.0);
  EXPECT_EQ(logp_drift(std::vector{kNan}, std::vector{1.0F}, Kept{0}).mean_absolute, 0.0);
}

}  // namespace
}  // namespace areal::algo
