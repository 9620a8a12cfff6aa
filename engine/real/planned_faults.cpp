#include "engine/real/planned_faults.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/rng.h"
#include "sim/fault/node_directory.h"

namespace areal::real {
namespace {

sim::NodeDirectory directory_of(const node::RoomPlan& room) {
  sim::NodeDirectory directory;
  directory.resize(room.nodes.size() + 1);
  for (const node::RoomNode& node : room.nodes) {
    directory[node.id.value] = {node.name, node::slot_names(room, node), node.role};
  }
  return directory;
}

}  // namespace

PlannedFaults::PlannedFaults(host::Loop& loop, port::TraceSink& sink, std::function<std::uint64_t()> next_seq,
                             NodeId self, std::uint64_t seed)
    : loop_(loop), sink_(sink), next_seq_(std::move(next_seq)), self_(self), decisions_(mix_words(seed, self.value)) {}

Result<std::unique_ptr<PlannedFaults>> PlannedFaults::make(const node::RoomPlan& room, const host::Identity& self,
                                                           std::uint64_t seed, host::Loop& loop, port::TraceSink& sink,
                                                           std::function<std::uint64_t()> next_seq) {
  std::unique_ptr<PlannedFaults> faults(new PlannedFaults(loop, sink, std::move(next_seq), self.node, seed));
  node::add_room_kinds(faults->kinds_);
  sim::add_fault_kinds(faults->kinds_);
  std::vector<config::FaultSpec> specs = room.scenario.faults;
  std::vector<config::RuleSpec> rules = room.scenario.rules;
  if (self.incarnation > 1) {
    for (config::FaultSpec& spec : specs) {
      if (spec.when && spec.when->occurrence != 0) spec.active = {0, 1};
    }
    for (config::RuleSpec& rule : rules) {
      if (rule.match.occurrence != 0) rule.match.occurrence = std::numeric_limits<std::uint32_t>::max();
    }
  }
  const sim::NodeDirectory directory = directory_of(room);
  auto hook = sim::RuleHook::make(rules, faults->kinds_, directory);
  if (!hook) return std::move(hook).error();
  auto plan = sim::FaultPlan::make(specs, room.scenario.budget, sim::Profile::kCalm, faults->kinds_, directory);
  if (!plan) return std::move(plan).error();
  faults->rules_ = std::move(*hook);
  faults->plan_ = std::move(*plan);
  return faults;
}

void PlannedFaults::start() {
  plan_.start(context());
  settle();
}

void PlannedFaults::on_event(const port::TraceEvent& event) {
  lamport_ = event.lamport;
  plan_.on_event(event, context(), due_);
  settle();
}

void PlannedFaults::settle() {
  if (std::exchange(settling_, true)) return;  // What it reports is seen by on_event() again.
  for (const sim::FaultNotice& notice : plan_.take_notices()) {
    port::TraceEvent event = sim::fault_event(notice, next_seq_(), 0, loop_.now());
    event.lamport = lamport_;
    sink_.on_event(event);
  }
  for (const sim::FaultAction& action : std::exchange(due_, {})) {
    if (order_) order_(action);
  }
  settling_ = false;
  loop_.cancel(timer_);
  const auto next = plan_.next_timed();
  if (!next) return;
  timer_ = loop_.arm(std::max(*next - loop_.now(), Duration{}), [this] {
    plan_.fire_timed(context(), due_);
    settle();
  });
}

host::MessageLot PlannedFaults::lot_of(NodeId to, const port::Send& message) {
  const sim::MessageFate fate = plan_.message_fate({self_, to, message.kind, message.body.kind}, context());
  settle();
  return {fate.lost, fate.late, fate.copies};
}

bool PlannedFaults::fails(port::ComputeKind what) {
  const bool fails = plan_.take_compute_failure(self_, what, context());
  settle();
  return fails;
}

bool PlannedFaults::refuses_memory() {
  const bool refuses = plan_.refuse_memory(self_, context());
  settle();
  return refuses;
}

bool PlannedFaults::flips() {
  const bool flips = plan_.take_flip(self_, context());
  settle();
  return flips;
}

}  // namespace areal::real
