// What goes wrong at a real node by plan: asked by its ports at every occasion. Absent in production.
#pragma once
#include "engine/port/fault_hook.h"
#include "engine/port/types.h"

namespace areal::host {

// The fate of one control message.
struct MessageLot {
  bool lost = false;
  Duration late{};
  std::uint32_t copies = 1;
};

// Called by the loop only.
class NodeFaults {
 public:
  virtual ~NodeFaults() = default;
  virtual port::FaultHook* hook() = 0;  // Rewrite rules; may be null.
  virtual MessageLot lot_of(NodeId to, const port::Send& message) = 0;
  virtual bool fails(port::ComputeKind what) = 0;
  virtual bool refuses_memory() = 0;
  // A bit of the payload that just landed flips.
  virtual bool flips() = 0;
};

}  // namespace areal::host
