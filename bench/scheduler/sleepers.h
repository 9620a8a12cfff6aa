// B3 SLEEPERS(n): n actors, each of which sleeps for 1 s and an exponential time of mean 1 s, again and again.
#pragma once
#include <vector>

#include "bench/scheduler/draws.h"
#include "bench/scheduler/hook.h"
#include "bench/scheduler/measured.h"

namespace areal::bench {

struct SleeperEvent {
  std::uint32_t actor = 0;
};

template <class Queue>
Measured run_sleepers(std::size_t count, std::uint64_t events, Hook hook) {
  const ExpTable<> naps(1e9);
  constexpr std::int64_t kLeast = 1'000'000'000;
  std::vector<Xorshift> actors;
  actors.reserve(count);
  Queue queue;
  for (std::uint32_t i = 0; i < count; ++i) {
    actors.emplace_back(i + 1);
    queue.post({kLeast + naps.draw(actors[i])}, {i});
  }
  Measured result{.events = events};
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < events; ++i) {
    const auto event = queue.pop();
    add_to_order(result.order, event.event.actor);
    hook.report(event.at, event.event.actor);
    queue.post(event.at + Duration{kLeast + naps.draw(actors[event.event.actor])}, event.event);
  }
  result.ns = watch.ns();
  return result;
}

}  // namespace areal::bench
