#include "sim/explore/order_keeper.h"

#include <algorithm>
#include <utility>

namespace areal::sim {

Result<OrderKeeper> OrderKeeper::make(const config::InterleaveSpec& spec, const std::vector<std::uint32_t>& order,
                                      const Room& room) {
  OrderKeeper keeper;
  for (const std::uint32_t point : order) {
    config::EventMatch match = spec.points[point];
    // Each point is one event.
    if (match.occurrence == 0) match.occurrence = 1;
    auto matcher = EventMatcher::compile(match, room.kinds, room.directory);
    if (!matcher) return matcher.error();
    if (!matcher->kind().is_input) {
      return error_at(match.line, "a point is an input: what is received or told, a timer or the end of a batch");
    }
    keeper.matchers_.push_back(std::move(*matcher));
  }
  keeper.places_.resize(order.size());
  return keeper;
}

// The first key of the queue, found by looking at all: the queue shows no other way without taking the event out.
OrderKeeper::Next OrderKeeper::next_of(World& world) {
  Next next;
  world.queue().for_each([&](Instant at, std::uint64_t number, const WorldEvent& /*event*/) {
    const bool earlier = next.number == 0 || at < next.at || (at == next.at && number < next.number);
    if (earlier) next = {at, number};
  });
  return next;
}

std::uint32_t OrderKeeper::place_of(World& world, std::uint64_t number) {
  const auto none = static_cast<std::uint32_t>(places_.size());
  if (std::exchange(looked_at_, number) == number) return none;
  const auto seen = std::ranges::find(let_through_, number);
  if (seen != let_through_.end()) return let_through_.erase(seen), none;
  const WorldEvent& event = *world.queue().find(number);
  using What = WorldEvent::What;
  const bool is_input = event.what == What::kDeliver || event.what == What::kTimer ||
                        event.what == What::kExitNoticed || (event.what == What::kPassed && event.is_input);
  if (!is_input) return none;
  const node::Node& node = world.node(event.node);
  const bool arrives = node.alive() && (event.incarnation == 0 || event.incarnation == node.incarnation());
  if (!arrives) return none;
  std::uint32_t found = none;
  for (std::uint32_t place = 0; place < none; ++place) {
    const bool hit = matchers_[place].hit(event.node, true, event.erased.record, event.erased.body);
    if (hit && found == none && !places_[place]) found = place;
  }
  return found;
}

// The point before has its turn at `at`: what was put off for it comes right behind it.
void OrderKeeper::follow(World& world, Instant at) {
  while (true) {
    const auto next = std::ranges::find(held_, done_, &Held::place);
    if (next == held_.end()) break;
    let_through_.push_back(world.queue().post(at, next->event));
    held_.erase(next);
    ++done_;
  }
}

bool OrderKeeper::release_all(World& world) {
  if (held_.empty()) return false;
  broken_ = true;
  std::ranges::stable_sort(held_, {}, &Held::place);
  for (Held& held : held_) let_through_.push_back(world.queue().post(world.now(), held.event));
  held_.clear();
  return true;
}

void OrderKeeper::before_step(World& world) {
  while (!broken_ && world.has_event()) {
    const Next next = next_of(world);
    if (!held_.empty() && next.at > held_since_ + kPatience) break;
    const std::uint32_t place = place_of(world, next.number);
    if (place == places_.size()) return;
    places_[place] = true;
    if (place == done_) {
      ++done_;
      follow(world, next.at);
      return;
    }
    if (held_.empty()) held_since_ = next.at;
    held_.push_back({place, *world.queue().find(next.number)});
    world.queue().cancel(next.number);
  }
  release_all(world);
}

}  // namespace areal::sim
