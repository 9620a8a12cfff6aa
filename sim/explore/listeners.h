// Everybody who listens to one run.
#pragma once
#include <utility>
#include <vector>

#include "sim/explore/run.h"

namespace areal::sim {

// Passes each line on to all, in their order. They must outlive it. Not thread-safe.
class Listeners : public RunObserver {
 public:
  explicit Listeners(std::vector<port::TraceSink*> sinks = {}) : sinks_(std::move(sinks)) {}

  void add(port::TraceSink* sink) { sinks_.push_back(sink); }
  void on_event(const port::TraceEvent& event) override {
    for (port::TraceSink* sink : sinks_) sink->on_event(event);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    for (port::TraceSink* sink : sinks_) sink->on_state(node, slot, digest);
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    for (port::TraceSink* sink : sinks_) sink->on_stream(stream, name);
  }
  void on_decision(const port::Decision& decision) override {
    for (port::TraceSink* sink : sinks_) sink->on_decision(decision);
  }

 private:
  std::vector<port::TraceSink*> sinks_;
};

}  // namespace areal::sim
