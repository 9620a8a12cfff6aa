// What a protocol waits for, in words that a wait-for graph can be drawn from.
#pragma once
#include <string_view>
#include <vector>

#include "engine/base/ids.h"

namespace areal::proto {

struct Wait {
  NodeId on;                 // Who must act; 0 if it is nobody in particular.
  std::string_view what;     // "reply to prepare", "barrier", "capacity".
  std::uint64_t detail = 0;  // Version, group or request, as `what` says.
};

using WaitList = std::vector<Wait>;

}  // namespace areal::proto
