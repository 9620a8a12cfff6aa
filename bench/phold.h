// PHOLD: 1,024 actors that hand on one event each, a quarter of them to another actor; the loop that recording is
// measured in. Deterministic from its seed, and independent of the simulator's own queue.
#pragma once
#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include "engine/port/trace_sink.h"

namespace areal::bench {

// Exponential with mean 1000, as the middles of 256 equal shares.
constexpr std::array<std::uint16_t, 256> exponential_steps() {
  std::array<std::uint16_t, 256> steps{};
  double remaining = 1;  // exp(-x) by small steps: no library function at compile time.
  double x = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double share = 1 - (static_cast<double>(i) + 0.5) / 256;
    while (remaining > share) remaining *= 1 - 0.0005, x += 0.0005;
    steps[i] = static_cast<std::uint16_t>(x * 1000);
  }
  return steps;
}
inline constexpr std::array<std::uint16_t, 256> kExponential = exponential_steps();

class Phold {
 public:
  static constexpr std::uint64_t kActors = 1024;

  Phold() : states_(kActors) {
    for (std::uint64_t actor = 0; actor < kActors; ++actor) {
      states_[actor] = {0x9E37'79B9'7F4A'7C15 * (actor + 1), actor + 1};
      queue_.push({static_cast<std::int64_t>(draw(states_[actor]) % 2000), actor, actor, 0});
    }
  }

  // Runs `events` events; `heard` is told each as a TraceEvent. Flips one bit of event `flipped`, if that is not 0.
  template <class Heard>
  void run(std::uint64_t events, Heard&& heard, std::uint64_t flipped = 0) {
    port::TraceEvent line;
    line.incarnation = 1;
    line.what = port::TraceWhat::kInput;
    line.record.kind = 0x0F10;
    line.record.size = 2;
    for (std::uint64_t seq = 1; seq <= events; ++seq) {
      const Event event = queue_.top();
      queue_.pop();
      State& state = states_[event.actor];
      const std::uint64_t drawn = draw(state);
      const std::uint64_t target = drawn % 4 == 0 ? (drawn >> 2) % kActors : event.actor;
      const std::int64_t after = 1000 + static_cast<std::int64_t>(kExponential[drawn >> 56]);
      queue_.push({event.at + after, next_++, target, seq});
      line.seq = seq;
      line.cause = event.cause;
      line.lamport = ++state.lamport;
      line.at.ns = event.at;
      line.node.value = event.actor + 1;
      line.record.words[0] = target + 1;
      line.record.words[1] = static_cast<std::uint64_t>(after) ^ (seq == flipped ? 4U : 0U);
      heard(line);
    }
  }

 private:
  struct State {
    std::uint64_t random = 0;
    std::uint64_t lamport = 0;
  };
  struct Event {
    std::int64_t at = 0;
    std::uint64_t number = 0;
    std::uint64_t actor = 0;
    std::uint64_t cause = 0;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  static std::uint64_t draw(State& state) {
    state.random ^= state.random << 13;
    state.random ^= state.random >> 7;
    state.random ^= state.random << 17;
    return state.random;
  }
  std::priority_queue<Event> queue_;
  std::vector<State> states_;
  std::uint64_t next_ = kActors;
};

}  // namespace areal::bench
