// The place where a node reports each event to a recorder: in every benchmark as in every node, on or off at run time.
#pragma once
#include <cstdint>

#include "engine/port/trace_sink.h"

namespace areal::bench {

class Hook {
 public:
  Hook() = default;
  explicit Hook(port::TraceSink* sink) : sink_(sink) {}

  void report(Instant at, std::uint64_t actor) {
    if (sink_ != nullptr) [[unlikely]]
      tell(at, actor);
  }

 private:
  [[gnu::noinline]] void tell(Instant at, std::uint64_t actor) {
    ++seq_;
    sink_->on_event({.seq = seq_, .cause = seq_ - 1, .lamport = seq_, .at = at, .node = {actor + 1}, .incarnation = 1});
  }

  port::TraceSink* sink_ = nullptr;
  std::uint64_t seq_ = 0;
};

}  // namespace areal::bench
