// The estimators of a Kullback-Leibler divergence.
#include "engine/algo/kl_estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace areal::algo {
namespace {

TEST(KlEstimator, ClampsWhatIsLargeAndKeepsANan) {
  const std::vector<float> log_p = {20.0F, -20.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F};
  const std::vector<float> log_q(4, 0.0F);
  const auto kl = kl_estimate(KlEstimator::kK1, true, log_p, log_q);
  EXPECT_EQ(kl[0], 10.0F);
  EXPECT_EQ(kl[1], -10.0F);
  EXPECT_TRUE(std::isnan(kl[2]));
  EXPECT_EQ(kl[3], 1.0F);
}

TEST(KlEstimator, K3IsNeverNegative) {
  for (float d = -3.0F; d < 3.0F; d += 0.125F) {
    EXPECT_GE(kl_estimate(KlEstimator::kK3, false, std::vector{d}, std::vector{0.0F})[0], 0.0F) << d;
  }
}

}  // namespace
}  // namespace areal::algo
