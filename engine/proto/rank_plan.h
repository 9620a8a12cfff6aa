// The part of a transfer plan that one rank sends or receives, without anything of the others: for large worlds.
//
// From grids, pieces that meet are computed and not searched, so a rank's part costs what it has to send or receive
// plus a little for every parameter, and neither operations nor shards of other ranks ever exist. With kFewestBytes it
// also costs a look at the bytes of every holder, because every rank must know who sends what.
#pragma once
#include "engine/proto/parameter_grid.h"
#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// The same operations in the same order as build_transfer_plan() has from metas_of() of both sides, in a plan that
// holds those of options.only_rank alone. `infer` is one engine. Refuses what that refuses.
// REQUIRES: options.only_rank is set and a rank of the world.
Result<std::shared_ptr<const TransferPlan>> build_rank_plan(const GridSet& train, const GridSet& infer,
                                                            const PlanOptions& options, const NamePolicy& policy);

}  // namespace areal::proto
