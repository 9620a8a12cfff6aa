#include "engine/proto/plan_digest.h"

#include <array>

#include "engine/base/check.h"

namespace areal::proto {
namespace {

Digest128 digest_of_op(const TransferPlan& plan, const PlanOp& op) {
  const Region& region = plan.regions[op.region];
  std::array<std::uint64_t, 3 * kMaxTensorRank + 2> words{};
  for (std::size_t dim = 0; dim < kMaxTensorRank; ++dim) {
    words[3 * dim] = region.send_offset[dim];
    words[3 * dim + 1] = region.recv_offset[dim];
    words[3 * dim + 2] = region.extent.extent[dim];
  }
  words[3 * kMaxTensorRank] = static_cast<std::uint64_t>(op.wire);
  words[3 * kMaxTensorRank + 1] = region.extent.rank;
  return hash_words(words);
}

}  // namespace

Digest128 chain_list(const Digest128& chain, const TransferPlan& plan, const PeerList& list) {
  const std::array<std::uint64_t, 3> head{list.send, list.recv, list.op_count};
  Digest128 hash = chain_digest(chain, hash_words(head));
  for (const PlanOp& op : plan.ops_of(list)) {
    hash = chain_digest(chain_digest(hash, plan.tensors[op.tensor].name_digest), digest_of_op(plan, op));
  }
  return hash;
}

DigestSum digest_share(const RankPlan& rank) {
  DigestSum sum;
  for (std::size_t i = 0; i < rank.peer_count(); ++i) sum.add(chain_list({}, rank.plan(), rank.list(i)));
  return sum;
}

Digest128 digest_of_shares(const PlanWorld& world, const DigestSum& shares) {
  const std::array<std::uint64_t, 5> words{world.infer_world, world.train_world, world.engines, shares.total.high,
                                           shares.total.low};
  return hash_words(words);
}

Digest128 plan_digest(const TransferPlan& plan) {
  AREAL_CHECK(!plan.only_rank.has_value());
  DigestSum sum;
  for (const PeerList& list : plan.lists) sum.add(chain_list({}, plan, list));
  return digest_of_shares(plan.world, sum);
}

}  // namespace areal::proto
