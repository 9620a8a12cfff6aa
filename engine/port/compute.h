// What a training engine and a rollout engine can be asked to do: step, pack, apply, generate, load, report.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// An operation ends exactly once, as ComputeDone with the caller's id. Operations of one node run in the order asked
// for, but for kGenerate, which run beside each other and beside everything else.
//
// Sim: the tiny engine, with times from the configured model's true sizes. Real: libtorch.
//
// Not thread-safe: only the node's loop calls it.
class Compute {
 public:
  virtual ~Compute() = default;
  virtual void start(SlotId slot, const StartCompute& effect) = 0;
  virtual void stop(SlotId slot, const StopCompute& effect) = 0;
  virtual void freeze(SlotId slot, const FreezeCompute& effect) = 0;
};

}  // namespace areal::port
