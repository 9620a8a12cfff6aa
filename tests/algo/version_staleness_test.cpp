// How old the tokens of an update are.
#include "engine/algo/version_staleness.h"

#include <gtest/gtest.h>

namespace areal::algo {
namespace {

// The limit counts accepted tasks, not consumed ones: with half of each batch accepted, what is trained on gets older
// with every version though the formula never objects.
TEST(VersionStaleness, FindsWhatTheLimitDoesNotBound) {
  const std::vector<std::int64_t> versions = {-1, 3, 4, 5, 0, 9};
  const std::vector<std::uint8_t> trained = {1, 1, 1, 1, 0, 1};
  const auto ages = version_staleness(versions, trained, 7, 2);
  ASSERT_TRUE(ages);
  EXPECT_EQ(ages->tokens, 4U);
  EXPECT_EQ(ages->theta.most, 4);
  EXPECT_EQ(ages->theta.least, -2);
  EXPECT_EQ(ages->too_old, 2U);
  EXPECT_EQ(ages->too_young, 1U);
  EXPECT_EQ(version_staleness(versions, trained, 7)->too_old, 0U);
  EXPECT_FALSE(version_staleness({}, {}, 7, 2));
}

}  // namespace
}  // namespace areal::algo
