// An executor fires timers and carries words between the protocols of one node; it owns no thread that they could see.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// Ends as TimerFired or TellIn at `slot`. A disarmed timer never fires; arming an armed one moves it.
//
// Sim: events of the world's queue; a node that hangs hears of them when it goes on. Real: the process's loop.
//
// Not thread-safe: only the node's loop calls it.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void arm(SlotId slot, const ArmTimer& effect) = 0;
  virtual void disarm(SlotId slot, const DisarmTimer& effect) = 0;
  virtual void tell(SlotId from, const Tell& effect) = 0;
};

}  // namespace areal::port
