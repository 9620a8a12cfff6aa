// Groups operations by pair of ranks and puts each group into wire order.
#include "engine/proto/transfer_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/base/fields.h"
#include "engine/proto/plan_digest.h"

namespace areal::proto {
namespace {

Digest128 roll(const Digest128& chain, const PlanTensor& tensor, const PlanOp& op) {
  const std::array<std::uint64_t, 6> words{
      chain.high, chain.low, tensor.name_digest.high, tensor.name_digest.low, static_cast<std::uint64_t>(op.wire),
      op.elements};
  return hash_words(words);
}

// How often each (sender, receiver) occurs, then where its operations start. Of one rank's part only its own pairs.
class PairIndex {
 public:
  explicit PairIndex(const TransferPlan& plan)
      : senders_{plan.world.infer_world, plan.world.world()}, receivers_{0, plan.world.infer_world} {
    if (plan.only_rank.has_value()) {
      (plan.world.is_training(*plan.only_rank) ? senders_ : receivers_) = {*plan.only_rank, *plan.only_rank + 1};
    }
    places_.assign(std::size_t{senders_.end - senders_.begin} * (receivers_.end - receivers_.begin), 0);
  }

  std::uint32_t& of(std::uint32_t send, std::uint32_t recv) {
    return places_[std::size_t{send - senders_.begin} * (receivers_.end - receivers_.begin) + recv - receivers_.begin];
  }

  struct Ranks {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  [[nodiscard]] Ranks senders() const { return senders_; }
  [[nodiscard]] Ranks receivers() const { return receivers_; }

 private:
  Ranks senders_;
  Ranks receivers_;
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
  PairIndex index(plan);
  for (const PlanOp& op : list.ops) ++index.of(op.send, op.recv);
  std::uint32_t next = 0;
  for (std::uint32_t send = index.senders().begin; send < index.senders().end; ++send) {
    for (std::uint32_t recv = index.receivers().begin; recv < index.receivers().end; ++recv) {
      const std::uint32_t count = std::exchange(index.of(send, recv), next);
      if (count == 0) continue;
      PeerList peer;
      peer.send = static_cast<TransferRank>(send);
      peer.recv = static_cast<TransferRank>(recv);
      peer.first_op = next;
      peer.op_count = count;
      plan.lists.push_back(peer);
      next += count;
    }
  }
  plan.ops.resize(list.ops.size());
  for (const PlanOp& op : list.ops) plan.ops[index.of(op.send, op.recv)++] = op;
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
  for (std::size_t i = 0; i < peer_count(); ++i) hash = chain_list(hash, *plan_, list(i));
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

std::shared_ptr<const TransferPlan> order_operations(OperationList list, const PlanOptions& options,
                                                     std::shared_ptr<const NameTable> train_names,
                                                     std::shared_ptr<const NameTable> infer_names) {
  auto plan = std::make_shared<TransferPlan>();
  plan->world = options.world;
  plan->only_rank = options.only_rank;
  plan->train_names = std::move(train_names);
  plan->infer_names = std::move(infer_names);
  group_operations(std::move(list), *plan);
  return plan;
}

Result<std::shared_ptr<const TransferPlan>> build_transfer_plan(const MetaSet& train, const MetaSet& infer,
                                                                const PlanOptions& options, const NamePolicy& policy) {
  Result<OperationList> list = mapping_operations(train, infer, options, policy);
  if (!list) return std::move(list).error();
  return order_operations(std::move(*list), options, train.names, infer.names);
}

}  // namespace areal::proto
