// B2 PHOLD(n, m): n actors with m events each; an event of an actor leads to one of the same, or for a quarter of them
// to one of any actor, 1,000 ns and an exponential time of mean 1,000 ns later.
//
// Fujimoto, "Performance of Time Warp under synthetic workloads", 1990, with the lookahead of ROSS's phold.
#pragma once
#include <vector>

#include "bench/scheduler/draws.h"
#include "bench/scheduler/hook.h"
#include "bench/scheduler/measured.h"
#include "bench/scheduler/phold_actor.h"

namespace areal::bench {

struct PholdEvent {
  std::uint32_t actor = 0;
};

template <class Queue>
Measured run_phold(std::size_t count, std::size_t starts, std::uint64_t events, Hook hook) {
  const ExpTable<> delays(1000);
  std::vector<PholdActor> actors = make_phold(count);
  Queue queue;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < starts; ++j) queue.post({1000 + delays.draw(actors[i].random)}, {i});
  }
  Measured result{.events = events};
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < events; ++i) {
    const auto event = queue.pop();
    add_to_order(result.order, event.event.actor);
    hook.report(event.at, event.event.actor);
    const PholdNext next = phold_step(actors, event.event.actor, delays);
    queue.post(event.at + Duration{next.after_ns}, {next.actor});
  }
  result.ns = watch.ns();
  return result;
}

}  // namespace areal::bench
