// A scenario's faults and rules at one real process: the same plan as in a simulation, asked by this process's ports.
//
// A process sees its own trace alone, so a fault acts where the event that sets it off happens. What hits another
// process (its death, a stop) is handed to `order`, since only the starter of a run may do that. Occurrences are
// counted by the first process of a node: what is to happen at the n-th event does not happen again in its replacement.
// Called by the loop only.
#pragma once
#include <functional>
#include <memory>

#include "engine/node/room_plan.h"
#include "engine/port/trace_sink.h"
#include "engine/real/host/handshake.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/node_faults.h"
#include "sim/fault/fault_plan.h"
#include "sim/fault/rule_hook.h"

namespace areal::real {

class PlannedFaults final : public host::NodeFaults {
 public:
  // Errors name the line of the scenario. `loop`, `room` and `sink` outlive it; `next_seq` numbers its trace events.
  static Result<std::unique_ptr<PlannedFaults>> make(const node::RoomPlan& room, const host::Identity& self,
                                                     std::uint64_t seed, host::Loop& loop, port::TraceSink& sink,
                                                     std::function<std::uint64_t()> next_seq);

  // `order` is told of a process that must die or stop until then.
  void set_order(std::function<void(const sim::FaultAction&)> order) { order_ = std::move(order); }
  // Draws which faults are on, and waits for those by time.
  void start();
  // Of this process's own trace.
  void on_event(const port::TraceEvent& event);

  port::FaultHook* hook() override { return rules_.empty() ? nullptr : &rules_; }
  host::MessageLot lot_of(NodeId to, const port::Send& message) override;
  bool fails(port::ComputeKind what) override;
  bool refuses_memory() override;
  bool flips() override;

 private:
  PlannedFaults(host::Loop& loop, port::TraceSink& sink, std::function<std::uint64_t()> next_seq, NodeId self,
                std::uint64_t seed);
  [[nodiscard]] sim::FaultContext context() { return {loop_.now(), decisions_, sink_}; }
  // Reports what happened, orders what must, and waits for what is next.
  void settle();

  host::Loop& loop_;
  port::TraceSink& sink_;
  std::function<std::uint64_t()> next_seq_;
  std::function<void(const sim::FaultAction&)> order_;
  NodeId self_;
  KindTable kinds_;
  sim::Decisions decisions_;
  sim::RuleHook rules_;
  sim::FaultPlan plan_;
  std::vector<sim::FaultAction> due_;
  host::LoopTimer timer_{};
  bool settling_ = false;
  std::uint64_t lamport_ = 0;  // Of the last event.
};

}  // namespace areal::real
