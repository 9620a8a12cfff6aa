// A clock tells a node's own time and nothing else.
#pragma once
#include "engine/base/time.h"

namespace areal::port {

// Monotonic per node; on real machines it drifts against other nodes. Used by the node to stamp its trace, never by a
// protocol.
//
// Sim: virtual time, the same for all nodes. Real: the machine's monotonic clock.
//
// Not thread-safe: only the node's loop calls it.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
};

}  // namespace areal::port
