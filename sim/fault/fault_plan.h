// What goes wrong in a run, when, and how much of it may go wrong at the same time.
//
// The plan decides and the world does: actions come back as values, and the world asks about every message, payload,
// operation and reservation. Every choice is a decision on a stream "fault.<n>.<what>...", 0 being "no fault". First
// one coin says whether a fault is on in this run, then its trigger or chance says when it happens.
//
// Budget: at most `engines_down_max` engine ranks are dead at the same time; a kill beyond it is counted as skipped.
// From the time of healing on nothing new happens, and partitions and slow links end. Loss and doubling hit requests
// and replies only (they are asked again), never one-way messages, never group operations.
//
// A value without pointers but for names in the kind table. Not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/port/trace_sink.h"
#include "engine/port/types.h"
#include "sim/fault/fault_kinds.h"
#include "sim/fault/planned_fault.h"
#include "sim/kernel/decision.h"

namespace areal::sim {

// Given with each call that may decide something.
struct FaultContext {
  Instant now;
  Decisions& decisions;
  port::TraceSink& sink;
};

enum class FaultAct : std::uint8_t { kKill, kHang };
struct FaultAction {
  FaultAct act = FaultAct::kKill;
  NodeId node;
  Instant until{};  // Of a hang.
  std::uint32_t fault = 0;
};

struct MessageInfo {
  NodeId from;
  NodeId to;
  port::MessageKind kind = port::MessageKind::kOneWay;
  KindId body = 0;
};
struct MessageFate {
  bool lost = false;
  Duration late{};
  std::uint32_t copies = 1;
};

// What became of one fault: the table that says whether a run tested anything.
struct FaultCount {
  FaultName kind = FaultName::kKill;
  bool active = false;
  std::uint64_t scheduled = 0;  // Times that it was set off, or drawn.
  std::uint64_t applied = 0;    // Times that it did something.
  std::uint64_t skipped = 0;    // Times that the budget or healing forbade it, or nobody was there.
};

class FaultPlan {
 public:
  FaultPlan() = default;
  // Errors name the line and what would be right.
  static Result<FaultPlan> make(std::span<const config::FaultSpec> specs, const config::BudgetSettings& budget,
                                Profile profile, const KindTable& kinds, const NodeDirectory& directory);

  // Draws which faults are on. Called once, before anything else.
  void start(const FaultContext& context);

  // When something is due next, healing included; nothing if nothing is. Ask again after every call that takes a
  // context.
  [[nodiscard]] std::optional<Instant> next_timed() const;
  // Does everything that is due at `context.now`.
  void fire_timed(const FaultContext& context, std::vector<FaultAction>& actions);
  // Looks at an event of the trace; may set off what waits for it. Also learns from it who is alive again.
  void on_event(const port::TraceEvent& event, const FaultContext& context, std::vector<FaultAction>& actions);

  // What becomes of a message; lost also if a partition parts the two.
  MessageFate message_fate(const MessageInfo& message, const FaultContext& context);
  [[nodiscard]] bool partitioned(NodeId a, NodeId b, Instant now) const;
  // How many times slower payload of `node` moves: at least 1. Asked once a payload.
  std::uint32_t payload_factor(NodeId node, const FaultContext& context);
  // Whether this operation fails, this payload has a flipped bit, this reservation is refused. Asked once each.
  bool take_compute_failure(NodeId node, port::ComputeKind what, const FaultContext& context);
  bool take_flip(NodeId node, const FaultContext& context);
  bool refuse_memory(NodeId node, const FaultContext& context);

  // A process ended without the plan; it counts as down until it starts again.
  void node_down(NodeId node);
  // Ends what can be ended; nothing new happens from here on.
  void heal(const FaultContext& context);
  [[nodiscard]] bool healed() const { return state_.healed; }

  // What happened since the last call, for the trace.
  std::vector<FaultNotice> take_notices();
  [[nodiscard]] bool has_notices() const { return !notices_.empty(); }
  [[nodiscard]] std::vector<FaultCount> counts() const;
  [[nodiscard]] std::span<const PlannedFault> faults() const { return faults_; }

  void save(StateWriter& writer) const;
  // Expects a plan made from the same scenario. REQUIRES: has_notices() was false when it was saved.
  bool load(StateReader& reader);

 private:
  struct Progress {
    bool active = false;
    std::uint64_t scheduled = 0;
    std::uint64_t applied = 0;
    std::uint64_t skipped = 0;
    bool open = false;                 // Occasions are taken: each one, or by chance ...
    Instant open_until{};              // ... before this.
    NodeId only{};                     // Who set off a fault without a pattern; 0: no limit to one node.
    std::vector<std::uint32_t> armed;  // So many occasions are taken, by node; entry 0 for messages.
    AREAL_FIELDS(active, scheduled, applied, skipped, open, open_until, only, armed)
  };
  // A fault that is due. `node` is where its trigger was seen; 0 for those by time.
  struct Due {
    Instant at{};
    std::uint32_t fault = 0;
    NodeId node{};
    AREAL_FIELDS(at, fault, node)
  };
  // A partition or a slow link under way; `node` 0: of all the fault's nodes.
  struct Window {
    std::uint32_t fault = 0;
    NodeId node{};
    Instant until{};
    AREAL_FIELDS(fault, node, until)
  };
  struct State {
    bool healed = false;
    std::vector<Progress> faults;
    std::vector<Due> due;  // In the order (at, when it was scheduled).
    std::vector<Window> windows;
    std::vector<NodeId> down;
    AREAL_FIELDS(healed, faults, due, windows, down)
  };

  void schedule(Due due);
  void set_off(const Due& due, const FaultContext& context, std::vector<FaultAction>& actions);
  void arm(std::uint32_t fault, NodeId node, Instant now);
  void open_window(std::uint32_t fault, NodeId node, const FaultContext& context);
  void strike(std::uint32_t fault, NodeId node, const FaultContext& context, std::vector<FaultAction>& actions);
  void try_process_chances(NodeId node, const FaultContext& context, std::vector<FaultAction>& actions);
  bool happens(std::uint32_t fault, NodeId a, NodeId b, const FaultContext& context);
  bool take(config::FaultKind kind, NodeId node, std::uint64_t detail, const FaultContext& context);
  Duration lateness(std::uint32_t fault, const MessageInfo& message, const FaultContext& context);
  void skip(std::uint32_t fault, NodeId node);
  void applied(const FaultApplied& what);
  [[nodiscard]] bool may_act(std::uint32_t fault) const;
  [[nodiscard]] bool beyond_budget(NodeId node) const;
  [[nodiscard]] bool is_down(NodeId node) const;
  [[nodiscard]] bool hits_message(const PlannedFault& fault, const MessageInfo& message) const;

  std::vector<PlannedFault> faults_;
  std::vector<std::uint32_t> of_messages_;   // Faults that are asked at each message ...
  std::vector<std::uint32_t> of_processes_;  // ... and at each input.
  std::vector<std::uint32_t> of_events_;     // Those with `when`.
  KindFilter filter_;                        // Kinds that some `when` names.
  NodeSet engines_;
  std::uint32_t engines_down_max_ = 1;
  std::optional<Instant> heal_at_;
  State state_;
  std::vector<FaultNotice> notices_;
};

}  // namespace areal::sim
