// One process's device: its buffers by tag, and the operations that run on it.
#pragma once
#include <array>
#include <vector>

#include "engine/base/fields.h"
#include "engine/node/ports.h"
#include "engine/port/types.h"

namespace areal::sim {

struct SimBuffer {
  BufferId id{};
  std::uint64_t bytes = 0;
  port::MemoryTag tag = port::MemoryTag::kStaging;
  AREAL_FIELDS(id, bytes, tag)
};

struct SimCompute {
  std::uint64_t number = 0;  // Of this operation in the world.
  SlotId slot{};
  node::Origin origin;
  port::StartCompute asked;
  std::uint64_t event = 0;  // Its end in the queue; 0: queued behind another, or parked.
  Instant started;
  bool parked = false;         // A frozen generation.
  bool mixed = false;          // Weights changed under a running generation.
  std::uint64_t produced = 0;  // Tokens of closed segments.
  AREAL_FIELDS(number, slot, origin, asked, event, started, parked, mixed, produced)
};

struct SimDevice {
  std::uint64_t capacity = 0;
  std::uint64_t model_bytes = 0;  // Weights (and optimizer) that the process holds once loaded.
  std::vector<SimBuffer> buffers;
  std::vector<SimCompute> running;  // Generations run beside each other; of the others only the first of the list.
  AREAL_FIELDS(capacity, model_bytes, buffers, running)

  [[nodiscard]] std::uint64_t used(port::MemoryTag tag) const {
    std::uint64_t sum = tag == port::MemoryTag::kWeights ? model_bytes : 0;
    for (const SimBuffer& buffer : buffers) sum += buffer.tag == tag ? buffer.bytes : 0;
    return sum;
  }
  [[nodiscard]] std::uint64_t used() const {
    std::uint64_t sum = model_bytes;
    for (const SimBuffer& buffer : buffers) sum += buffer.bytes;
    return sum;
  }
  // The process is gone, and everything it held with it.
  void clear() {
    model_bytes = 0;
    buffers.clear();
    running.clear();
  }
};

}  // namespace areal::sim
