// Children and ports of a host as its guard's process sees them.
#pragma once
#include <cstdint>
#include <functional>

#include "engine/port/types.h"

namespace areal::host {

// Called by the loop only; handlers run on the loop, later.
class ProcessBackend {
 public:
  virtual ~ProcessBackend() = default;
  // A port that nobody on this machine holds, looked for from a candidate on; 0 if there is none.
  virtual std::uint16_t lease_port() = 0;
  virtual void release_port(std::uint16_t port) = 0;
  // Starts the process of `node`. `started` gets its incarnation once it can be written to (or has died before), or 0
  // if it could not be started (it runs, or the system refused); `exited` its exit code once it is confirmed dead.
  virtual void start(NodeId node, std::uint16_t port, std::function<void(Incarnation)> started,
                     std::function<void(Incarnation, std::int32_t)> exited) = 0;
  virtual void stop(NodeId node, Duration grace) = 0;
};

}  // namespace areal::host
