// Everything that can happen to a protocol, as one variant.
#pragma once
#include <variant>

#include "engine/port/types.h"

namespace areal::proto {

// Messages and tells carry a Record; a protocol reads it with dispatch_record<A, B, ...>().
using Input =
    std::variant<port::Started, port::MessageIn, port::TellIn, port::TimerFired, port::GroupJoined, port::BatchDone,
                 port::GroupAborted, port::ComputeDone, port::BufferReady, port::BufferReleased, port::StoreDone,
                 port::PortLeased, port::ProcessStarted, port::ProcessExited, port::MemoryUsed>;

}  // namespace areal::proto
