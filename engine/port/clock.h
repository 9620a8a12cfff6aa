// A clock tells a node's own time and nothing else.
#pragma once
#include "engine/base/time.h"

namespace areal::port {

// Monotonic per node; it may drift against other nodes. Used by the node to stamp its trace, never by a protocol.
// Sim: virtual time plus the node's drift. Real: the machine's monotonic clock.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
};

}  // namespace areal::port
