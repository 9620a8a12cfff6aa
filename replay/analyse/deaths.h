// Which processes a trace shows to have died: exits that their starters saw, and kills by the plan.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/port/trace_sink.h"
#include "engine/port/types.h"
#include "replay/analyse/merge_part.h"
#include "sim/fault/fault_kinds.h"

namespace areal::analyse {

class Deaths {
 public:
  void see(const port::TraceEvent& event) {
    if (event.what == port::TraceWhat::kInput) {
      dispatch_record<port::ProcessExited>(event.record, [this](const port::ProcessExited& exit) {
        if (exit.code != 0) exits_.push_back({exit.node, exit.incarnation});
      });
    } else if (event.what == port::TraceWhat::kFault) {
      dispatch_record<sim::FaultApplied>(event.record, [this](const sim::FaultApplied& fault) {
        if (fault.kind == sim::FaultName::kKill) kills_.push_back(fault.node);
      });
    }
  }

  // Whether the process is among them. A kill names no incarnation, so each stands for one process only, and is used
  // up.
  bool take(const ProcessId& process) {
    if (std::ranges::find(exits_, process) != exits_.end()) return true;
    const auto kill = std::ranges::find(kills_, process.node);
    if (kill == kills_.end()) return false;
    kills_.erase(kill);
    return true;
  }

 private:
  std::vector<ProcessId> exits_;
  std::vector<NodeId> kills_;
};

}  // namespace areal::analyse
