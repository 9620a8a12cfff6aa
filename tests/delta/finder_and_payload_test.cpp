// What the finder gives goes into payloads: both headers in one program.
#include <gtest/gtest.h>

#include "engine/delta/cpu/change_finder.h"
#include "engine/delta/sparse_payload.h"

namespace areal::delta {
namespace {

TEST(FinderAndPayload, FoundIndicesAreChangesOfAPayload) {
  const std::vector<float> weights = {1.0F, 1.25F, -2.0F};
  const std::vector<float> still(3, 0.0F);
  const std::vector<float> moments(3, 1e-8F);
  const std::vector<float> moved = {0.0F, 1.0F, 0.0F};
  const ProvenStep step{.learning_rate = 1e-2, .weight_decay = 0.0, .epsilon = 1e-8};
  ChangeFinder finder;
  FoundChanges<std::int32_t> found;
  finder.find(ChangeRule::proven(step), {weights, moved, moments}, found);
  ASSERT_EQ(found.indices, (std::vector<std::int32_t>{1}));
  const ChangeSet changes = change_indices(found.indices);
  EXPECT_EQ(changes.dtype, DType::kI32);
  EXPECT_EQ(changes.narrow.size(), found.values.size());
  finder.find(ChangeRule::proven(step), {weights, still, moments}, found);
  EXPECT_TRUE(found.indices.empty());
}

}  // namespace
}  // namespace areal::delta
