// B4 PINGPONG and PAIRS(n): n pairs of actors, one message in flight in each, 1 us on its way.
#pragma once
#include <vector>

#include "bench/scheduler/draws.h"
#include "bench/scheduler/hook.h"
#include "bench/scheduler/measured.h"

namespace areal::bench {

struct PingEvent {
  std::uint32_t to = 0;
  std::uint32_t value = 0;
};

template <class Queue>
Measured run_pingpong(std::size_t pairs, std::uint64_t events, Hook hook) {
  constexpr Duration kLatency{1000};
  std::vector<std::uint64_t> received(2 * pairs);
  Queue queue;
  for (std::uint32_t i = 0; i < pairs; ++i) queue.post({1000}, {2 * i, 0});
  Measured result{.events = events};
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < events; ++i) {
    const auto message = queue.pop();
    add_to_order(result.order, message.event.to);
    hook.report(message.at, message.event.to);
    received[message.event.to] += message.event.value;
    queue.post(message.at + kLatency, {message.event.to ^ 1U, message.event.value + 1});
  }
  result.ns = watch.ns();
  return result;
}

}  // namespace areal::bench
