// Groups operations by pair of ranks and puts each group into wire order.
#include "engine/proto/transfer_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/base/fields.h"

namespace areal::proto {
namespace {

Digest128 roll(const Digest128& chain, const PlanTensor& tensor, const PlanOp& op) {
  const std::array<std::uint64_t, 6> words{
      chain.high, chain.low, tensor.name_digest.high, tensor.name_digest.low, static_cast<std::uint64_t>(op.wire),
      op.elements};
  return hash_words(words);
}

// How often each (sender, receiver) occurs, then where its operations start.
class PairIndex {
 public:
  explicit PairIndex(const PlanWorld& world)
      : world_(world), places_(std::size_t{world.train_world} * world.infer_world, 0) {}

  std::uint32_t& of(const PlanOp& op) {
    return places_[std::size_t{op.send - world_.infer_world} * world_.infer_world + op.recv];
  }

 private:
  PlanWorld world_;
  std::vector<std::uint32_t> places_;
};

// Operations come ascending by tensor; inside one tensor they still have to be ordered by offset.
void sort_by_offset(std::span<PlanOp> ops, const std::vector<Region>& regions) {
  for (std::size_t start = 0; start < ops.size();) {
    std::size_t end = start + 1;
    while (end < ops.size() && ops[end].tensor == ops[start].tensor) ++end;
    if (end - start > 1) {
      std::ranges::stable_sort(ops.subspan(start, end - start), {}, [&regions](const PlanOp& op) {
        return std::tie(regions[op.region].send_offset, regions[op.region].recv_offset);
      });
    }
    start = end;
  }
}

void total_up(PeerList& list, std::span<PlanOp> ops, const std::vector<PlanTensor>& tensors) {
  for (PlanOp& op : ops) {
    DTypeTotal& total = list.by_dtype[static_cast<std::size_t>(op.wire)];
    op.wire_offset = total.elements;
    ++total.ops;
    total.elements += op.elements;
    total.bytes += op.bytes();
    list.elements += op.elements;
    list.bytes += op.bytes();
    list.sequence = roll(list.sequence, tensors[op.tensor], op);
  }
}

void group_operations(OperationList list, TransferPlan& plan) {
  plan.tensors = std::move(list.tensors);
  plan.regions = std::move(list.regions);
  PairIndex index(plan.world);
  for (const PlanOp& op : list.ops) ++index.of(op);
  std::uint32_t next = 0;
  for (std::uint32_t send = plan.world.infer_world; send < plan.world.world(); ++send) {
    for (std::uint32_t recv = 0; recv < plan.world.infer_world; ++recv) {
      PlanOp probe;
      probe.send = static_cast<TransferRank>(send);
      probe.recv = static_cast<TransferRank>(recv);
      const std::uint32_t count = std::exchange(index.of(probe), next);
      if (count == 0) continue;
      PeerList peer;
      peer.send = probe.send;
      peer.recv = probe.recv;
      peer.first_op = next;
      peer.op_count = count;
      plan.lists.push_back(peer);
      next += count;
    }
  }
  plan.ops.resize(list.ops.size());
  for (const PlanOp& op : list.ops) plan.ops[index.of(op)++] = op;
  for (PeerList& peer : plan.lists) {
    const std::span<PlanOp> ops = std::span(plan.ops).subspan(peer.first_op, peer.op_count);
    sort_by_offset(ops, plan.regions);
    total_up(peer, ops, plan.tensors);
  }
  plan.index_ranks();
}

}  // namespace

const PeerList& RankPlan::list(std::size_t i) const { return plan_->lists[lists_[i]]; }

TransferRank RankPlan::peer(std::size_t i) const {
  return plan_->world.is_training(rank_) ? list(i).recv : list(i).send;
}

std::span<const PlanOp> RankPlan::ops(std::size_t i) const { return plan_->ops_of(list(i)); }

PlanStats RankPlan::stats() const {
  PlanStats stats;
  for (std::size_t i = 0; i < peer_count(); ++i) {
    ++stats.peers;
    stats.ops += list(i).op_count;
    stats.elements += list(i).elements;
    stats.bytes += list(i).bytes;
  }
  return stats;
}

Digest128 RankPlan::stable_hash() const {
  Digest128 hash;
  for (std::size_t i = 0; i < peer_count(); ++i) {
    const std::array<std::uint64_t, 3> head{list(i).send, list(i).recv, list(i).op_count};
    hash = chain_digest(hash, hash_words(head));
    for (const PlanOp& op : ops(i)) {
      const Region& region = plan_->regions[op.region];
      std::array<std::uint64_t, 3 * kMaxTensorRank + 2> words{};
      for (std::size_t dim = 0; dim < kMaxTensorRank; ++dim) {
        words[3 * dim] = region.send_offset[dim];
        words[3 * dim + 1] = region.recv_offset[dim];
        words[3 * dim + 2] = region.extent.extent[dim];
      }
      words[3 * kMaxTensorRank] = static_cast<std::uint64_t>(op.wire);
      words[3 * kMaxTensorRank + 1] = region.extent.rank;
      hash = chain_digest(chain_digest(hash, plan_->tensors[op.tensor].name_digest), hash_words(words));
    }
  }
  return hash;
}

const PeerList* TransferPlan::find(std::uint32_t send, std::uint32_t recv) const {
  const auto place = std::ranges::lower_bound(lists, std::pair(send, recv), {}, [](const PeerList& list) {
    return std::pair<std::uint32_t, std::uint32_t>(list.send, list.recv);
  });
  return place != lists.end() && place->send == send && place->recv == recv ? &*place : nullptr;
}

RankPlan TransferPlan::rank(std::uint32_t transfer_rank) const {
  AREAL_CHECK(transfer_rank + 1 < rank_start_.size());
  const std::uint32_t start = rank_start_[transfer_rank];
  return {*this, transfer_rank, std::span(list_order_).subspan(start, rank_start_[transfer_rank + 1] - start)};
}

PlanStats TransferPlan::stats() const {
  PlanStats stats;
  for (std::uint32_t sender = world.infer_world; sender < world.world(); ++sender) {
    const PlanStats part = rank(sender).stats();
    stats.peers += part.peers;
    stats.ops += part.ops;
    stats.elements += part.elements;
    stats.bytes += part.bytes;
  }
  return stats;
}

std::vector<DType> TransferPlan::wire_dtypes() const {
  std::array<bool, kDTypeCount> used{};
  for (const PeerList& list : lists) {
    for (std::size_t i = 0; i < kDTypeCount; ++i) used[i] = used[i] || list.by_dtype[i].ops > 0;
  }
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (used[i]) dtypes.push_back(static_cast<DType>(i));
  }
  std::ranges::stable_sort(dtypes, {}, [](DType dtype) { return to_text(dtype); });
  return dtypes;
}

Digest128 TransferPlan::stable_hash() const {
  Digest128 hash;
  for (std::uint32_t sender = world.infer_world; sender < world.world(); ++sender) {
    hash = chain_digest(hash, rank(sender).stable_hash());
  }
  return hash;
}

void TransferPlan::index_ranks() {
  rank_start_.assign(world.world() + 1, 0);
  for (const PeerList& list : lists) {
    ++rank_start_[list.send + 1U];
    ++rank_start_[list.recv + 1U];
  }
  for (std::size_t i = 1; i < rank_start_.size(); ++i) rank_start_[i] += rank_start_[i - 1];
  list_order_.assign(2 * lists.size(), 0);
  std::vector<std::uint32_t> next(rank_start_.begin(), rank_start_.end() - 1);
  for (std::uint32_t i = 0; i < lists.size(); ++i) {
    list_order_[next[lists[i].send]++] = i;
    list_order_[next[lists[i].recv]++] = i;
  }
}

Result<std::shared_ptr<const TransferPlan>> build_transfer_plan(const MetaSet& train, const MetaSet& infer,
                                                                const PlanOptions& options, const NamePolicy& policy) {
  Result<OperationList> list = mapping_operations(train, infer, options, policy);
  if (!list) return std::move(list).error();
  auto plan = std::make_shared<TransferPlan>();
  plan->world = options.world;
  plan->train_names = train.names;
  plan->infer_names = infer.names;
  group_operations(std::move(*list), *plan);
  return std::shared_ptr<const TransferPlan>(std::move(plan));
}

}  // namespace areal::proto
