#include "engine/proto/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/fields.h"

namespace areal::proto {
namespace {

using Kind = CoverageFault::Kind;

// A box that one operation writes, in the receiver's shard.
struct Written {
  Offsets begin{};
  Offsets end{};
  std::uint32_t sender = 0;
};

struct Gap {
  Kind kind = Kind::kHole;
  Offsets begin{};
  Offsets end{};
  std::vector<std::uint32_t> senders;
};

bool fills(const Written& box, const Shape& shape, std::size_t from_dim) {
  for (std::size_t i = from_dim; i < shape.rank; ++i) {
    if (box.begin[i] != 0 || box.end[i] != shape.extent[i]) return false;
  }
  return true;
}

std::vector<std::uint32_t> cuts_along(const std::vector<Written>& boxes, const Shape& shape, std::size_t dim) {
  std::vector<std::uint32_t> cuts{0, shape.extent[dim]};
  for (const Written& box : boxes) {
    cuts.push_back(box.begin[dim]);
    cuts.push_back(box.end[dim]);
  }
  std::ranges::stable_sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  return cuts;
}

// The first part of `shape` that is not in exactly one box, looking at dimensions from `dim` on: between two cuts along
// one dimension the same boxes count everywhere. Calls itself once a dimension, so kMaxTensorRank deep.
std::optional<Gap> first_gap(std::vector<Written> boxes, const Shape& shape, std::size_t dim) {
  if (boxes.size() == 1 && fills(boxes.front(), shape, dim)) return std::nullopt;
  std::ranges::stable_sort(boxes, {}, [dim](const Written& box) { return box.begin[dim]; });
  const std::vector<std::uint32_t> cuts = cuts_along(boxes, shape, dim);
  std::vector<Written> open;
  auto next = boxes.begin();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::erase_if(open, [&](const Written& box) { return box.end[dim] <= cuts[i]; });
    while (next != boxes.end() && next->begin[dim] == cuts[i]) open.push_back(*next++);
    std::optional<Gap> gap;
    if (open.empty()) {
      gap = Gap{};
      for (std::size_t k = dim + 1; k < shape.rank; ++k) gap->end[k] = shape.extent[k];
    } else if (dim + 1 < shape.rank) {
      gap = first_gap(open, shape, dim + 1);
    } else if (open.size() > 1) {
      gap = Gap{Kind::kOverlap, {}, {}, {open[0].sender, open[1].sender}};
    }
    if (!gap) continue;
    gap->begin[dim] = cuts[i];
    gap->end[dim] = cuts[i + 1];
    return gap;
  }
  return std::nullopt;
}

class Prover {
 public:
  Prover(const TransferPlan& plan, const ShardBook& train, const ShardBook& infer,
         std::span<const config::Alias> aliases)
      : plan_(plan), train_(train), infer_(infer), aliases_(aliases), is_planned_(infer.parameters(), false) {
    for (const PlanTensor& tensor : plan.tensors) {
      const auto parameter = infer.parameter_of(tensor.infer_name);
      parameter_of_.push_back(parameter.value_or(kNone));
      if (parameter.has_value()) is_planned_[*parameter] = true;
    }
  }

  std::optional<CoverageFault> run() {
    if (plan_.only_rank.has_value() && plan_.world.is_training(*plan_.only_rank)) return check_sender(*plan_.only_rank);
    for (std::uint32_t recv = 0; recv < plan_.world.infer_world; ++recv) {
      if (plan_.only_rank.has_value() && *plan_.only_rank != recv) continue;
      if (auto fault = check_receiver(recv)) return fault;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  [[nodiscard]] CoverageFault fault_at(Kind kind, const PlanOp& op) const {
    CoverageFault fault{kind, plan_.name_of(plan_.tensors[op.tensor]), op.recv, {op.send}};
    const Region& region = plan_.regions[op.region];
    fault.rank = region.extent.rank;
    for (std::size_t i = 0; i < fault.rank; ++i) {
      fault.begin[i] = region.recv_offset[i];
      fault.end[i] = region.recv_offset[i] + region.extent.extent[i];
    }
    return fault;
  }

  static bool is_inside(const Offsets& offset, const Shape& extent, const Shape& shard) {
    if (extent.rank != shard.rank) return false;
    for (std::size_t i = 0; i < shard.rank; ++i) {
      if (extent.extent[i] == 0 || std::uint64_t{offset[i]} + extent.extent[i] > shard.extent[i]) return false;
    }
    return true;
  }

  // Whether one operation is well placed.
  [[nodiscard]] std::optional<CoverageFault> check(const PlanOp& op) const {
    const PlanWorld& world = plan_.world;
    if (op.recv >= world.infer_world || op.send < world.infer_world || op.send >= world.world()) {
      return fault_at(Kind::kOutside, op);
    }
    const auto sent = train_.parameter_of(plan_.tensors[op.tensor].train_name);
    const auto received = infer_.parameter_of(plan_.tensors[op.tensor].infer_name);
    if (!sent || !received) return fault_at(Kind::kOutside, op);
    const auto ours = train_.find(*sent, op.send - world.infer_world);
    const auto theirs = infer_.find(*received, op.recv % world.instance());
    if (!ours || !theirs) return fault_at(Kind::kOutside, op);
    if (ours->again || theirs->again) return fault_at(Kind::kAmbiguous, op);
    const Region& region = plan_.regions[op.region];
    if (!is_inside(region.send_offset, region.extent, ours->shard.shape) ||
        !is_inside(region.recv_offset, region.extent, theirs->shard.shape)) {
      return fault_at(Kind::kOutside, op);
    }
    for (std::size_t i = 0; i < region.extent.rank; ++i) {
      const std::uint64_t from = std::uint64_t{ours->shard.offset[i]} + region.send_offset[i];
      if (from == std::uint64_t{theirs->shard.offset[i]} + region.recv_offset[i]) continue;
      CoverageFault fault = fault_at(Kind::kMisplaced, op);
      for (std::size_t k = 0; k < fault.rank; ++k) {
        fault.begin[k] += theirs->shard.offset[k];
        fault.end[k] += theirs->shard.offset[k];
      }
      return fault;
    }
    return std::nullopt;
  }

  std::optional<CoverageFault> check_sender(std::uint32_t send) {
    const RankPlan rank = plan_.rank(send);
    for (std::size_t i = 0; i < rank.peer_count(); ++i) {
      for (const PlanOp& op : rank.ops(i)) {
        if (auto fault = check(op)) return fault;
      }
    }
    return std::nullopt;
  }

  std::optional<CoverageFault> check_receiver(std::uint32_t recv) {
    std::vector<const PlanOp*> ops;
    const RankPlan rank = plan_.rank(recv);
    for (std::size_t i = 0; i < rank.peer_count(); ++i) {
      for (const PlanOp& op : rank.ops(i)) ops.push_back(&op);
    }
    std::ranges::stable_sort(ops, {}, [](const PlanOp* op) { return op->tensor; });
    for (const PlanOp* op : ops) {
      if (auto fault = check(*op)) return fault;
    }
    const auto parameter_of = [this](const PlanOp* op) { return parameter_of_[op->tensor]; };
    std::ranges::stable_sort(ops, {}, parameter_of);
    for (std::uint32_t parameter = 0; parameter < infer_.parameters(); ++parameter) {
      const auto held = infer_.find(parameter, recv % plan_.world.instance());
      if (!held || held->shard.shape.elements() == 0) continue;
      const auto mine = std::ranges::equal_range(ops, parameter, {}, parameter_of);
      auto fault = mine.empty() && is_alias(parameter)
                       ? check_alias(parameter, *held, recv)
                       : check_filled({mine.begin(), mine.end()}, parameter, *held, recv);
      if (fault) return fault;
    }
    return std::nullopt;
  }

  [[nodiscard]] CoverageFault fault_in(Kind kind, std::uint32_t parameter, const ShardMeta& shard, const Gap& gap,
                                       std::uint32_t recv) const {
    CoverageFault fault{kind, infer_.name(parameter), recv, gap.senders};
    fault.rank = shard.shape.rank;
    for (std::size_t i = 0; i < fault.rank; ++i) {
      fault.begin[i] = shard.offset[i] + gap.begin[i];
      fault.end[i] = shard.offset[i] + gap.end[i];
    }
    return fault;
  }

  // Whether the operations fill the shard, each element once.
  [[nodiscard]] std::optional<CoverageFault> check_filled(const std::vector<const PlanOp*>& ops,
                                                          std::uint32_t parameter, const ShardBook::Held& held,
                                                          std::uint32_t recv) const {
    if (held.again) return fault_in(Kind::kAmbiguous, parameter, held.shard, whole(held.shard), recv);
    std::vector<Written> boxes;
    for (const PlanOp* op : ops) {
      const Region& region = plan_.regions[op->region];
      Written box{region.recv_offset, {}, op->send};
      for (std::size_t i = 0; i < region.extent.rank; ++i) box.end[i] = box.begin[i] + region.extent.extent[i];
      boxes.push_back(box);
    }
    const std::optional<Gap> gap = first_gap(std::move(boxes), held.shard.shape, 0);
    if (!gap) return std::nullopt;
    return fault_in(gap->kind, parameter, held.shard, *gap, recv);
  }

  // Also a name that only engines have and that nobody declared.
  [[nodiscard]] bool is_alias(std::uint32_t parameter) const {
    return !is_planned_[parameter] ||
           std::ranges::find(aliases_, infer_.name_index(parameter), &config::Alias::name) != aliases_.end();
  }

  static Gap whole(const ShardMeta& shard) { return {Kind::kHole, {}, shard.shape.extent, {}}; }

  [[nodiscard]] std::optional<CoverageFault> check_alias(std::uint32_t parameter, const ShardBook::Held& held,
                                                         std::uint32_t recv) const {
    const auto alias = std::ranges::find(aliases_, infer_.name_index(parameter), &config::Alias::name);
    if (alias != aliases_.end()) {
      const auto source = infer_.parameter_of(alias->source);
      const auto there = source ? infer_.find(*source, recv % plan_.world.instance()) : std::nullopt;
      const bool is_served = source && is_planned_[*source] && there && !there->again;
      if (is_served && there->shard.shape == held.shard.shape && there->shard.offset == held.shard.offset) {
        return std::nullopt;
      }
    }
    return fault_in(Kind::kNoSource, parameter, held.shard, whole(held.shard), recv);
  }

  const TransferPlan& plan_;
  const ShardBook& train_;
  const ShardBook& infer_;
  std::span<const config::Alias> aliases_;
  std::vector<std::uint32_t> parameter_of_;  // By the plan's tensor: the engines' parameter. Several may write one.
  std::vector<bool> is_planned_;             // By the engines' parameter.
};

}  // namespace

std::string describe(const CoverageFault& fault) {
  std::string range;
  for (std::size_t i = 0; i < fault.rank; ++i) {
    range += fmt::format("{}{}..{}", i == 0 ? "" : ", ", fault.begin[i], fault.end[i]);
  }
  std::string text =
      fmt::format("{}: {}[{}] of rank {}", areal::to_text(fault.kind), fault.tensor, range, fault.receiver);
  for (std::size_t i = 0; i < fault.senders.size(); ++i) {
    text += fmt::format("{}{}",
                        i > 0                      ? ", "
                        : fault.senders.size() > 1 ? ", from ranks "
                                                   : ", from rank ",
                        fault.senders[i]);
  }
  return text;
}

std::optional<CoverageFault> find_coverage_fault(const TransferPlan& plan, const ShardBook& train,
                                                 const ShardBook& infer, std::span<const config::Alias> aliases) {
  return Prover(plan, train, infer, aliases).run();
}

}  // namespace areal::proto
