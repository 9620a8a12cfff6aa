// The event queue with many events on very different scales of time, against an ordered set.
//
// Each phase draws increments of its own scale, from all at one time to near the end of time, so that every part of the
// queue's ladder is used: long runs of one time, rungs within rungs, the far part, the heap beside the run.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "engine/base/rng.h"
#include "sim/kernel/event_queue.h"

namespace areal::sim {
namespace {

using Queue = EventQueue<std::uint64_t>;

struct Twin {
  Queue queue;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> model;  // (time, number) -> event.
  std::int64_t now = 0;
  std::uint64_t posted = 0;

  void post(std::int64_t at) {
    const std::uint64_t number = queue.post({at}, ++posted);
    model[{at, number}] = posted;
  }
  void pop() {
    const auto first = model.begin();
    RC_ASSERT(queue.next_time() == Instant{first->first.first});
    pop_unseen();
  }
  // Without a look at the next time before, which prepares the queue.
  void pop_unseen() {
    const auto first = model.begin();
    const Queue::Popped popped = queue.pop();
    RC_ASSERT(popped.at == Instant{first->first.first});
    RC_ASSERT(popped.number == first->first.second);
    RC_ASSERT(popped.event == first->second);
    now = first->first.first;
    model.erase(first);
    RC_ASSERT(queue.size() == model.size());
  }
  void cancel(std::uint64_t pick) {
    const auto [at, number] = model.begin()->first;
    auto place = model.lower_bound({at + static_cast<std::int64_t>(pick % 1000), 0});
    if (place == model.end()) place = model.find({at, number});
    const std::uint64_t cancelled = place->first.second;
    RC_ASSERT(queue.find(cancelled) != nullptr);
    RC_ASSERT(queue.cancel(cancelled));
    RC_ASSERT(queue.find(cancelled) == nullptr);
    model.erase(place);
  }
  void reload() {
    StateWriter words;
    queue.save(words);
    Queue back;
    StateReader reader(words.words());
    RC_ASSERT(back.load(reader));
    queue = std::move(back);
  }
};

// A time at or after now; within 2^bits of it, mostly much nearer, never behind the end of time.
std::int64_t draw_time(Rng& rng, std::int64_t now, unsigned bits) {
  if (bits == 0) return now;
  const std::uint64_t scale = rng.draw_below(bits) + 1;
  const auto offset = static_cast<std::int64_t>(rng.draw_below(std::uint64_t{1} << scale));
  return now > kGreatestTime - offset ? kGreatestTime : now + offset;
}

// `grow` in 100 steps post, the others pop; one in twenty cancels.
void run_phase(Twin& twin, Rng& rng, std::uint64_t steps, unsigned bits, std::uint64_t grow) {
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t choice = rng.draw_below(100);
    if (twin.model.empty() || choice < grow) {
      twin.post(draw_time(rng, twin.now, bits));
    } else if (choice % 20 == 7) {
      twin.cancel(rng.draw_u64());
    } else if (choice % 2 == 0) {
      twin.pop();
    } else {
      twin.pop_unseen();
    }
  }
}

RC_GTEST_PROP(EventQueue, KeepsTheOrderOnAllScales, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  Twin twin;
  const auto phases = *rc::gen::inRange<int>(1, 8);
  for (int phase = 0; phase < phases; ++phase) {
    const auto bits = *rc::gen::element<unsigned>(0, 1, 4, 10, 20, 34, 50, 62);
    run_phase(twin, rng, *rc::gen::inRange<std::uint64_t>(0, 1500), bits, *rc::gen::element<std::uint64_t>(30, 52, 90));
    if (*rc::gen::inRange<int>(0, 4) == 0) twin.reload();
  }
  while (!twin.model.empty()) twin.pop_unseen();
  RC_ASSERT(twin.queue.empty());
}

// What is posted within an event, between its time and the next one's, is where a prepared queue could go wrong.
RC_GTEST_PROP(EventQueue, TakesEventsBetweenTheLastAndTheNext, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  Twin twin;
  const auto far = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40);
  const auto count = *rc::gen::inRange<int>(1, 300);
  for (int i = 0; i < count; ++i) twin.post(far + static_cast<std::int64_t>(rng.draw_below(3)));
  RC_ASSERT(twin.queue.next_time() >= Instant{far});  // Prepared for the far ones.
  const auto burst = *rc::gen::inRange<int>(1, 1000);
  for (int i = 0; i < burst; ++i) {
    twin.post(static_cast<std::int64_t>(rng.draw_below(static_cast<std::uint64_t>(far))));
    if (i % 3 == 0) twin.pop();
  }
  while (!twin.model.empty()) twin.pop();
}

}  // namespace
}  // namespace areal::sim
