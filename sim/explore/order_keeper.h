// Makes named events of a run happen in a given order, by putting off those that come before their turn.
//
// A point is an input that waits in the world's queue: a message, a tell, a timer, the end of a batch (not the end of a
// compute operation, which has no delivery of its own). One that comes too early is taken out, and put back right
// behind the one that it has to follow. If the wait lasts longer than kPatience, or nothing else can happen, the order
// cannot be kept: what was put off happens at once, and the run goes on freely. A late message is a legal thing to
// happen, so that what a judge finds in such a run counts too.
//
// Not thread-safe; belongs to one world.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/fault/event_matcher.h"
#include "sim/world/world.h"

namespace areal::sim {

class OrderKeeper {
 public:
  static constexpr Duration kPatience{60'000'000'000};

  // `order[i]` is the point that comes i-th. Errors name the line and what would be right.
  // REQUIRES: `order` is a permutation of the points.
  static Result<OrderKeeper> make(const config::InterleaveSpec& spec, const std::vector<std::uint32_t>& order,
                                  const Room& room);

  // Called before each step of the world; after it the next event may happen.
  void before_step(World& world);
  // What was put off while nothing else waits is put back. False if there is nothing.
  bool release_all(World& world);
  // All points happened, in the order.
  [[nodiscard]] bool kept() const { return !broken_ && done_ == places_.size(); }

 private:
  struct Held {
    std::uint32_t place = 0;
    WorldEvent event;
  };
  struct Next {
    Instant at;
    std::uint64_t number = 0;
  };

  // The place of the point that this event is; places_.size() if it is none, or has been counted.
  std::uint32_t place_of(World& world, std::uint64_t number);
  void follow(World& world, Instant at);
  [[nodiscard]] static Next next_of(World& world);

  std::vector<EventMatcher> matchers_;  // By place in the order.
  std::vector<bool> places_;            // Whether the point of this place was met, and held or let through.
  std::vector<Held> held_;
  std::vector<std::uint64_t> let_through_;  // Numbers of queued events that are not looked at again.
  std::uint64_t looked_at_ = 0;             // The event that was next at the last look; each is counted once.
  std::uint32_t done_ = 0;                  // Points let through, in order.
  Instant held_since_;
  bool broken_ = false;
};

}  // namespace areal::sim
