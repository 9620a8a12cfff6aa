// An executor fires timers and carries words between the protocols of one node; it owns no thread that they could see.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// Ends as TimerFired or TellIn at `slot`. A disarmed timer never fires; arming an armed one moves it.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void arm(SlotId slot, const ArmTimer& effect) = 0;
  virtual void disarm(SlotId slot, const DisarmTimer& effect) = 0;
  virtual void tell(SlotId from, const Tell& effect) = 0;
};

}  // namespace areal::port
