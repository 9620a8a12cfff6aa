// Starts and ends processes and leases ports on a host.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// A leased port is given to nobody else on the host until release_port(); it stays leased while its process may live. A
// lease without a free port, and the start of a process that runs, end kRefused.
//
// Sim: ports 10000 to 32767 of a host, looked for from a drawn one on; processes of the room. Real: sockets and child
// processes of the machine.
//
// Not thread-safe: only the node's loop calls it.
class Process {
 public:
  virtual ~Process() = default;
  virtual void lease_port(SlotId slot, const LeasePort& effect) = 0;  // Ends as PortLeased.
  virtual void release_port(SlotId slot, const ReleasePort& effect) = 0;
  virtual void start(SlotId slot, const StartProcess& effect) = 0;  // Ends as ProcessStarted, later ProcessExited.
  virtual void stop(SlotId slot, const StopProcess& effect) = 0;    // Ends as ProcessExited.
};

}  // namespace areal::port
