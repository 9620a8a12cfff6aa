// The event queue against a sorted list: any sequence of posts, pops, cancels, copies and reloads behaves the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>

#include "sim/kernel/event_queue.h"

namespace areal::sim {
namespace {

using Queue = EventQueue<std::uint64_t>;

// What a queue must be: entries in the order of posting; `numbers` are those the queue gave.
struct Model {
  struct Entry {
    std::int64_t at = 0;
    std::uint64_t event = 0;
  };
  std::vector<Entry> entries;

  [[nodiscard]] std::size_t first() const {
    const auto place = std::ranges::min_element(entries, {}, &Entry::at);  // The first of equal ones.
    return static_cast<std::size_t>(place - entries.begin());
  }
};

struct System {
  Queue queue;
  std::vector<std::uint64_t> numbers;  // Of waiting events, in the order of posting.
};

using QueueCommand = rc::state::Command<Model, System>;

struct Post : QueueCommand {
  std::int64_t at = *rc::gen::inRange<std::int64_t>(0, 20);
  std::uint64_t event = *rc::gen::arbitrary<std::uint64_t>();
  void apply(Model& model) const override { model.entries.push_back({at, event}); }
  void run(const Model& /*model*/, System& system) const override {
    const std::uint64_t number = system.queue.post({at}, event);
    const bool is_last = system.numbers.empty() || number > system.numbers.back();  // RC_ASSERT evaluates both sides.
    RC_ASSERT(is_last);
    system.numbers.push_back(number);
  }
  void show(std::ostream& out) const override { out << "post at " << at; }
};

struct Pop : QueueCommand {
  void checkPreconditions(const Model& model) const override { RC_PRE(!model.entries.empty()); }
  void apply(Model& model) const override {
    model.entries.erase(model.entries.begin() + static_cast<std::ptrdiff_t>(model.first()));
  }
  void run(const Model& model, System& system) const override {
    const std::size_t first = model.first();
    RC_ASSERT(system.queue.size() == model.entries.size());
    RC_ASSERT(system.queue.next_time() == Instant{model.entries[first].at});
    const Queue::Popped popped = system.queue.pop();
    RC_ASSERT(popped.at.ns == model.entries[first].at);
    RC_ASSERT(popped.event == model.entries[first].event);
    RC_ASSERT(popped.number == system.numbers[first]);
    system.numbers.erase(system.numbers.begin() + static_cast<std::ptrdiff_t>(first));
  }
  void show(std::ostream& out) const override { out << "pop"; }
};

struct Cancel : QueueCommand {
  std::size_t pick = *rc::gen::inRange<std::size_t>(0, 1000);
  void checkPreconditions(const Model& model) const override { RC_PRE(!model.entries.empty()); }
  void apply(Model& model) const override {
    model.entries.erase(model.entries.begin() + static_cast<std::ptrdiff_t>(pick % model.entries.size()));
  }
  void run(const Model& model, System& system) const override {
    const auto place = system.numbers.begin() + static_cast<std::ptrdiff_t>(pick % model.entries.size());
    RC_ASSERT(system.queue.cancel(*place));
    RC_ASSERT(!system.queue.cancel(*place));
    system.numbers.erase(place);
    RC_ASSERT(system.queue.size() == system.numbers.size());
  }
  void show(std::ostream& out) const override { out << "cancel " << pick; }
};

struct Reload : QueueCommand {
  void apply(Model& /*model*/) const override {}
  void run(const Model& /*model*/, System& system) const override {
    StateWriter words;
    system.queue.save(words);
    Queue back;
    StateReader reader(words.words());
    RC_ASSERT(back.load(reader));
    system.queue = back;
  }
  void show(std::ostream& out) const override { out << "reload"; }
};

RC_GTEST_PROP(EventQueue, BehavesLikeASortedList, ()) {
  System system;
  rc::state::check(Model{}, system, rc::state::gen::execOneOfWithArgs<Post, Post, Post, Pop, Pop, Cancel, Reload>());
  std::uint64_t last = 0;
  Instant at{-1};
  while (!system.queue.empty()) {
    const Queue::Popped popped = system.queue.pop();
    RC_ASSERT(popped.at > at || (popped.at == at && popped.number > last));
    last = popped.number;
    at = popped.at;
  }
}

}  // namespace
}  // namespace areal::sim
