#include "engine/proto/member_plan.h"

#include <algorithm>
#include <array>

namespace areal::proto {
namespace {

bool overlap(const Region& a, const Region& b) {
  for (std::size_t d = 0; d < a.extent.rank; ++d) {
    const std::uint32_t start = std::max(a.recv_offset[d], b.recv_offset[d]);
    const std::uint32_t end = std::min(a.recv_offset[d] + a.extent.extent[d], b.recv_offset[d] + b.extent.extent[d]);
    if (start >= end) return false;
  }
  return true;
}

// Elements of `op` that an earlier operation on the same tensor already wrote. Boxes of one tensor are few.
std::uint64_t rewritten(const TransferPlan& plan, std::span<const PlanOp> earlier, const PlanOp& op) {
  const Region& region = plan.regions[op.region];
  const bool again =
      std::ranges::any_of(earlier, [&](const PlanOp& other) { return overlap(plan.regions[other.region], region); });
  return again ? op.elements : 0;
}

// Sums over the operations that one receiver gets, tensor by tensor.
void cover(const TransferPlan& plan, const RankPlan& rank, MemberPlan& member) {
  std::vector<PlanOp> ops;
  for (std::size_t i = 0; i < rank.peer_count(); ++i) {
    ops.insert(ops.end(), rank.ops(i).begin(), rank.ops(i).end());
  }
  std::ranges::stable_sort(ops, {}, &PlanOp::tensor);
  std::size_t first = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].tensor != ops[first].tensor) first = i;
    if (i == first) ++member.tensors;
    const std::uint64_t again = rewritten(plan, std::span(ops).subspan(first, i - first), ops[i]);
    member.duplicates += again;
    member.covered += ops[i].elements - again;
  }
}

std::uint64_t elements_of_rank(const MetaSet& infer, std::uint32_t infer_rank, std::span<const std::uint32_t> aliases) {
  std::uint64_t elements = 0;
  for (const ParameterMeta& parameter : infer.parameters) {
    if (std::ranges::find(aliases, parameter.name) != aliases.end()) continue;
    for (const ReplicaMeta& replica : infer.replicas_of(parameter)) {
      for (const ShardMeta& shard : infer.shards_of(replica)) {
        if (shard.global_rank == infer_rank) elements += shard.shape.elements();
      }
    }
  }
  return elements;
}

MemberPlan member_plan(const TransferPlan& plan, const MetaSet& infer, std::span<const std::uint32_t> aliases,
                       std::uint32_t rank) {
  const RankPlan local = plan.rank(rank);
  MemberPlan member{.rank = rank, .sends = plan.world.is_training(rank), .digest = local.stable_hash()};
  for (const DType wire : plan.wire_dtypes()) member.passes.push_back({wire, wire, 0, 0});
  for (std::size_t i = 0; i < local.peer_count(); ++i) {
    const PeerList& list = local.list(i);
    member.peers.push_back({list.send, list.recv, list.op_count, list.elements, list.bytes, list.sequence});
    member.operations += list.op_count;
    for (MemberPass& pass : member.passes) {
      const DTypeTotal& total = list.by_dtype[static_cast<std::size_t>(pass.wire)];
      pass.elements += total.elements;
      pass.bytes += total.bytes;
    }
    if (!local.ops(i).empty()) {
      for (MemberPass& pass : member.passes) {
        if (pass.wire == local.ops(i).front().wire) pass.storage = local.ops(i).front().storage;
      }
    }
  }
  if (member.sends) {
    member.expected = member.covered = member.elements();
    member.tensors = plan.tensors.size();
  } else {
    cover(plan, local, member);
    member.expected = elements_of_rank(infer, rank % plan.world.instance(), aliases);
  }
  return member;
}

}  // namespace

std::uint64_t MemberPlan::elements() const {
  std::uint64_t sum = 0;
  for (const MemberPass& pass : passes) sum += pass.elements;
  return sum;
}

std::uint64_t MemberPlan::bytes() const {
  std::uint64_t sum = 0;
  for (const MemberPass& pass : passes) sum += pass.bytes;
  return sum;
}

std::vector<MemberPlan> member_plans(const TransferPlan& plan, const MetaSet& infer,
                                     std::span<const std::uint32_t> aliases) {
  std::vector<MemberPlan> members;
  for (std::uint32_t rank = 0; rank < plan.world.world(); ++rank) {
    members.push_back(member_plan(plan, infer, aliases, rank));
  }
  return members;
}

}  // namespace areal::proto
