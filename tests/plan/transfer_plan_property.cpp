// INV-PLAN-COVER and INV-PLAN-SYM on random layouts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/plan/random_layouts.h"

namespace areal::proto {
namespace {

RC_GTEST_PROP(TransferPlanProperty, EveryElementOfEveryEngineIsWrittenOnce, ()) {
  const Layouts layouts = random_layouts();
  const auto plan = plan_of(layouts.train, layouts.infer, {.world = layouts.world});
  RC_ASSERT(plan.has_value());
  RC_ASSERT(covers_once(**plan, layouts.infer));
  for (const PlanOp& op : (*plan)->ops) {
    RC_ASSERT(op.send >= layouts.world.infer_world);
    RC_ASSERT(op.recv < layouts.world.infer_world);
  }
}

// Each rank computes its plan alone, from the metas; what it sends must be what the other one expects, in one order.
RC_GTEST_PROP(TransferPlanProperty, SenderAndReceiverComputeTheSameList, ()) {
  const Layouts layouts = random_layouts();
  std::vector<std::shared_ptr<const TransferPlan>> plans;
  for (std::uint32_t rank = 0; rank < layouts.world.world(); ++rank) {
    const PlanOptions options{.world = layouts.world, .only_rank = rank, .prune_above = 0};
    plans.push_back(plan_of(layouts.train, layouts.infer, options).value());
  }
  for (std::uint32_t send = layouts.world.infer_world; send < layouts.world.world(); ++send) {
    for (std::uint32_t recv = 0; recv < layouts.world.infer_world; ++recv) {
      const PeerList* sent = plans[send]->find(send, recv);
      const PeerList* expected = plans[recv]->find(send, recv);
      RC_ASSERT((sent == nullptr) == (expected == nullptr));
      if (sent == nullptr) continue;
      RC_ASSERT(sent->sequence == expected->sequence);
      const auto ours = plans[send]->ops_of(*sent);
      const auto theirs = plans[recv]->ops_of(*expected);
      RC_ASSERT(ours.size() == theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        RC_ASSERT(plans[send]->regions[ours[i].region] == plans[recv]->regions[theirs[i].region]);
        RC_ASSERT(ours[i].wire_offset == theirs[i].wire_offset);
      }
    }
  }
}

}  // namespace
}  // namespace areal::proto
