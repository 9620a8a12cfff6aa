// The digest of a plan: equal on all ranks, other for any change.
#include "engine/proto/plan_digest.h"

#include <gtest/gtest.h>

#include "tests/plan/changed_plan.h"
#include "tests/plan/random_layouts.h"

namespace areal::proto {
namespace {

// No rank holds the whole plan; what they add must sum up to its digest, on either side.
RC_GTEST_PROP(PlanDigest, SharesOfSendersAndOfReceiversSumUpToIt, ()) {
  const Layouts layouts = random_layouts();
  const auto plan = *plan_of(layouts.train, layouts.infer, {.world = layouts.world});
  DigestSum sent;
  DigestSum received;
  for (std::uint32_t rank = 0; rank < layouts.world.world(); ++rank) {
    const auto part = *plan_of(layouts.train, layouts.infer, {.world = layouts.world, .only_rank = rank});
    DigestSum& sum = layouts.world.is_training(rank) ? sent : received;
    const DigestSum share = digest_share(part->rank(rank));
    sum.add(share.total);
  }
  RC_ASSERT(digest_of_shares(layouts.world, sent) == plan_digest(*plan));
  RC_ASSERT(digest_of_shares(layouts.world, received) == plan_digest(*plan));
}

RC_GTEST_PROP(PlanDigest, AnyChangeOfASliceChangesIt, ()) {
  const Layouts layouts = random_layouts();
  const auto plan = *plan_of(layouts.train, layouts.infer, {.world = layouts.world});
  const auto change = *rc::gen::elementOf(all_plan_changes());
  const auto place = *rc::gen::inRange<std::size_t>(0, plan->ops.size());
  const auto dim = *rc::gen::inRange<std::size_t>(0, 2);
  RC_ASSERT(plan_digest(*changed_plan(*plan, change, place, dim)) != plan_digest(*plan));
}

TEST(PlanDigest, KnowsTheWorld) {
  const MetaSet one = make_metas({whole("w")});
  const auto two_engines = *plan_of(one, one, {.world = {2, 1, 2}});
  const auto bigger = *plan_of(one, one, {.world = {2, 2, 2}});
  EXPECT_EQ(plan_digest(*two_engines), plan_digest(**plan_of(one, one, {.world = {2, 1, 2}})));
  EXPECT_NE(plan_digest(*two_engines), plan_digest(*bigger));
}

}  // namespace
}  // namespace areal::proto
