// Trace events as lines of text between a node's process and whoever started the run: what progress is shown from.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "engine/port/trace_sink.h"

namespace areal::real {

// "N seq at node incarnation slot what kind:words body:words", all numbers hexadecimal; without line end.
std::string line_of(const port::TraceEvent& event);
// Nothing if the line is none of these.
std::optional<port::TraceEvent> event_of(std::string_view line);

// "F kill NODE" or "F stop NODE NS": a process must die, or stop for so long.
struct FaultOrder {
  bool kill = true;
  NodeId node{};
  Duration lasts{};
};
std::string line_of(const FaultOrder& order);
std::optional<FaultOrder> order_of(std::string_view line);

}  // namespace areal::real
