// Named buffers on a device and how much each tag uses.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// A reserved buffer stays reserved until release() was asked for and BufferReleased came; then its name is free again.
// Sizes are in bytes; a reservation that does not fit ends kNoMemory.
//
// Sim: limits by device, a fault can refuse. Real: host or device allocations.
//
// Not thread-safe: only the node's loop calls it.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void reserve(SlotId slot, const ReserveBuffer& effect) = 0;  // Ends as BufferReady.
  virtual void release(SlotId slot, const ReleaseBuffer& effect) = 0;  // Ends as BufferReleased.
  virtual void used(SlotId slot, const QueryMemory& effect) = 0;       // Ends as MemoryUsed.
};

}  // namespace areal::port
