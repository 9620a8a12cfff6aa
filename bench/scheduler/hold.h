// B1 HOLD(n): n events wait; the first is taken and one is posted after an exponential increment, and so on.
#pragma once
#include "bench/scheduler/draws.h"
#include "bench/scheduler/hook.h"
#include "bench/scheduler/measured.h"

namespace areal::bench {

// Event: whole numbers up to 2^32 can be made into it by make_event(), and read back by number_of().
struct HoldEvent {
  std::uint32_t number = 0;
};
inline void set_number(HoldEvent& event, std::uint64_t number) { event.number = static_cast<std::uint32_t>(number); }
inline std::uint64_t number_of(const HoldEvent& event) { return event.number; }

template <class Queue, class Event = HoldEvent>
Measured run_hold(std::size_t pending, std::uint64_t events, Hook hook) {
  const ExpTable<16> increments(1e6);
  Xorshift random(1);
  Queue queue;
  Event event{};
  std::uint64_t posted = 0;
  for (std::size_t i = 0; i < pending; ++i) {
    set_number(event, posted++);
    queue.post({increments.draw(random)}, event);
  }
  Measured result{.events = events};
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < events; ++i) {
    const auto next = queue.pop();
    add_to_order(result.order, number_of(next.event));
    hook.report(next.at, number_of(next.event));
    set_number(event, posted++);
    queue.post(next.at + Duration{increments.draw(random)}, event);
  }
  result.ns = watch.ns();
  return result;
}

}  // namespace areal::bench
