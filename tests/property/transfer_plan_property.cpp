// INV-PLAN-COVER and INV-PLAN-SYM on random layouts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/plan_fixtures.h"

namespace areal::proto {
namespace {

// A replica of a parameter of `rows` x `columns`, cut into 1 to `most` uneven pieces along one dimension.
ReplicaText random_replica(std::uint32_t rows, std::uint32_t columns, std::uint32_t most, std::uint32_t first_rank) {
  const bool by_rows = *rc::gen::arbitrary<bool>();
  const std::uint32_t extent = by_rows ? rows : columns;
  const std::uint32_t pieces = *rc::gen::inRange(1U, std::min(most, extent) + 1);
  ReplicaText replica;
  std::uint32_t start = 0;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    const std::uint32_t rest = extent - start;
    const std::uint32_t left = pieces - piece - 1;
    const std::uint32_t size = left == 0 ? rest : *rc::gen::inRange(1U, rest - left + 1);
    ShardText shard;
    shard.rank = first_rank + piece;
    shard.offset = by_rows ? std::vector<std::uint32_t>{start, 0} : std::vector<std::uint32_t>{0, start};
    shard.shape = by_rows ? std::vector<std::uint32_t>{size, columns} : std::vector<std::uint32_t>{rows, size};
    replica.push_back(shard);
    start += size;
  }
  return replica;
}

constexpr std::uint32_t kMostPieces = 4;
constexpr std::uint32_t kMostReplicas = 3;

struct Layouts {
  MetaSet train;
  MetaSet infer;
  PlanWorld world;
};

Layouts random_layouts() {
  const std::uint32_t engines = *rc::gen::inRange(1U, 4U);
  const std::uint32_t names = *rc::gen::inRange(1U, 4U);
  std::vector<ParameterText> train;
  std::vector<ParameterText> infer;
  for (std::uint32_t name = 0; name < names; ++name) {
    const std::uint32_t rows = *rc::gen::inRange(1U, 9U);
    const std::uint32_t columns = *rc::gen::inRange(1U, 9U);
    ParameterText ours{"layer." + std::to_string(name), {}};
    ParameterText theirs = ours;
    const std::uint32_t copies = *rc::gen::inRange(1U, kMostReplicas + 1);
    for (std::uint32_t i = 0; i < copies; ++i) {
      ours.replicas.push_back(random_replica(rows, columns, kMostPieces, i * kMostPieces));
    }
    const std::uint32_t served = *rc::gen::inRange(1U, kMostReplicas + 1);
    for (std::uint32_t i = 0; i < served; ++i) {
      theirs.replicas.push_back(random_replica(rows, columns, kMostPieces, i * kMostPieces));
    }
    train.push_back(ours);
    infer.push_back(theirs);
  }
  constexpr std::uint32_t kRanks = kMostPieces * kMostReplicas;
  return {make_metas(train), make_metas(infer), {engines * kRanks, kRanks, engines}};
}

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
