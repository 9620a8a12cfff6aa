// A 128-bit digest of a whole plan, which ranks can agree on although none of them holds more than its own part.
//
// Each (sender, receiver) pair has a digest of its operations in wire order: names, wire dtypes, offsets at both ends,
// extents. The plan's digest is that of the world and of the sum (modulo 2^128) over all pairs. So a rank computes what
// its own pairs add, and the sum over the training ranks is the sum over the inference ranks and that of the whole
// plan: equal sums prove that both sides expect the same. Pure functions.
#pragma once
#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// `chain` moved on by all operations of one pair.
Digest128 chain_list(const Digest128& chain, const TransferPlan& plan, const PeerList& list);

// What the pairs of one rank add to the sum. Not for comparing plans: it lacks the world.
DigestSum digest_share(const RankPlan& rank);

// From the sum of the shares of all training ranks, or of all inference ranks.
Digest128 digest_of_shares(const PlanWorld& world, const DigestSum& shares);

// REQUIRES: the plan is a whole one (no only_rank).
Digest128 plan_digest(const TransferPlan& plan);

}  // namespace areal::proto
