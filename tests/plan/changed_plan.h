// Plans with one planted defect.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "engine/proto/transfer_plan.h"

namespace areal::proto {

enum class PlanChange : std::uint8_t {
  kDrop,
  kRepeat,
  kOtherSender,
  kOtherReceiver,
  kSendOffset,
  kRecvOffset,
  kShorter,
  kLonger,
};

inline std::vector<PlanChange> all_plan_changes() {
  std::vector<PlanChange> all;
  for (int i = 0; i <= static_cast<int>(PlanChange::kLonger); ++i) all.push_back(static_cast<PlanChange>(i));
  return all;
}

// `plan` with operation `place` changed, along dimension `dim` where that says anything. Ranks move to the next one.
inline std::shared_ptr<const TransferPlan> changed_plan(const TransferPlan& plan, PlanChange change, std::size_t place,
                                                        std::size_t dim) {
  OperationList list{plan.tensors, plan.regions, plan.ops};
  PlanOp op = list.ops[place];
  Region region = list.regions[op.region];
  const PlanWorld& world = plan.world;
  switch (change) {
    case PlanChange::kDrop:
      break;
    case PlanChange::kRepeat:
      break;
    case PlanChange::kOtherSender:
      op.send = static_cast<TransferRank>(world.infer_world + (op.send - world.infer_world + 1) % world.train_world);
      break;
    case PlanChange::kOtherReceiver:
      op.recv = static_cast<TransferRank>((op.recv + 1) % world.infer_world);
      break;
    case PlanChange::kSendOffset:
      ++region.send_offset[dim];
      break;
    case PlanChange::kRecvOffset:
      ++region.recv_offset[dim];
      break;
    case PlanChange::kShorter:
      --region.extent.extent[dim];
      break;
    case PlanChange::kLonger:
      ++region.extent.extent[dim];
      break;
  }
  op.region = static_cast<std::uint32_t>(list.regions.size());
  op.elements = region.extent.elements();
  list.regions.push_back(region);
  if (change == PlanChange::kDrop) {
    list.ops.erase(list.ops.begin() + static_cast<std::ptrdiff_t>(place));
  } else if (change == PlanChange::kRepeat) {
    list.ops.insert(list.ops.begin() + static_cast<std::ptrdiff_t>(place), op);
  } else {
    list.ops[place] = op;
  }
  // Operations come ascending by tensor, as the builder has them.
  std::ranges::stable_sort(list.ops, {}, &PlanOp::tensor);
  return order_operations(std::move(list), {.world = plan.world}, plan.train_names, plan.infer_names);
}

}  // namespace areal::proto
