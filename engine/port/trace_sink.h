// Receives every step of a node; recording, judging, printing and counting are sinks.
//
// Not thread-safe: only the loop that steps the nodes calls it. A sink changes nothing and never asks a protocol.
#pragma once
#include <cstdint>

#include "engine/base/ids.h"
#include "engine/base/record.h"
#include "engine/base/time.h"

namespace areal::port {

enum class TraceWhat : std::uint8_t {
  kInput,    // Something happened to a protocol; `record` is one of the inputs.
  kEffect,   // A protocol asked for something; `record` is one of the effects (a note's body is in `body`).
  kFault,    // The plan did something to the world; `record` is a fault kind.
  kDropped,  // A rule took an input or effect away; it did not happen.
};

// One line of the trace. Everything in it is part of the run's digest.
struct TraceEvent {
  std::uint64_t seq = 0;    // Counts all events of a run from 1.
  std::uint64_t cause = 0;  // seq of the event that led to this one; 0 for what the world does by itself.
  std::uint64_t lamport = 0;
  Instant at;  // The node's own time.
  NodeId node{};
  Incarnation incarnation = 0;
  SlotId slot{};
  TraceWhat what = TraceWhat::kInput;
  std::uint32_t rule = 0;  // The rewrite rule that made or changed this event, counted from 1; 0 for none.
  Record record{};
  Record body{};  // Of a message, a tell or a note; kind 0 otherwise.
};

// One choice that the simulator made. Choice 0 is always the harmless one.
struct Decision {
  std::uint32_t stream = 0;  // Index into the names given by on_stream().
  std::uint64_t ordinal = 0;
  std::uint64_t bound = 0;
  std::uint64_t chosen = 0;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void on_event(const TraceEvent& event) = 0;
  // `digest` is the state of the protocol that just stepped, after all its effects were reported.
  virtual void on_state(NodeId node, SlotId slot, const Digest128& digest) = 0;
  virtual void on_stream(std::uint32_t stream, std::string_view name) = 0;
  virtual void on_decision(const Decision& decision) = 0;
};

// A sink that events are enough for; what else it wants to hear it overrides.
class EventSink : public TraceSink {
 public:
  void on_state(NodeId /*node*/, SlotId /*slot*/, const Digest128& /*digest*/) override {}
  void on_stream(std::uint32_t /*stream*/, std::string_view /*name*/) override {}
  void on_decision(const Decision& /*decision*/) override {}
};

}  // namespace areal::port
