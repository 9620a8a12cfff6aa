// What happens next: events in the exact order (time, number), the number given at posting.
//
// Events stay where they are in a vector of slots with a free list; a KeyLadder holds their keys of 16 bytes in order.
// A number is a count of posts with the event's slot in its low bits, so cancel() finds the event at once and the order
// is still the order of posting. A cancelled event leaves its key behind, which is dropped when it comes up or when
// such keys are the most. This is the scheduler of every simulated run, and the one that the benchmarks measure.
//
// A value: copies go their own ways, and save() and load() carry it through words. Event must be default-constructible
// and movable. Not thread-safe.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/state.h"
#include "engine/base/time.h"
#include "sim/kernel/big_pages.h"
#include "sim/kernel/key_ladder.h"

namespace areal::sim {

// Writes and reads an event that StateWriter and StateReader know.
struct PlainEventCodec {
  template <class Stream, class Event>
  void operator()(Stream& stream, Event& event) const {
    stream.value(event);
  }
};

template <class Event>
class EventQueue {
 public:
  struct Popped {
    Instant at;
    std::uint64_t number = 0;
    Event event;
  };

  // Returns the number of the event: greater than all before. REQUIRES: fewer than 2^24 events wait.
  std::uint64_t post(Instant at, Event event) {
    const std::uint64_t place = take_slot();
    const std::uint64_t number = (++posted_ << kSlotBits) | place;
    Slot& slot = slots_[place];
    slot.number = number;
    slot.at = at;
    slot.event = std::move(event);
    ++size_;
    keys_.push({at, number});
    return number;
  }

  // False if no event with this number waits.
  bool cancel(std::uint64_t number) {
    const std::uint64_t slot = number & kSlotMask;
    if (number == 0 || slot >= slots_.size() || slots_[slot].number != number) return false;
    release_slot(slot);
    ++stale_;
    if (stale_ > kStaleMin && stale_ > size_) {
      keys_.drop_if([this](const QueueKey& key) { return is_stale(key); });
      stale_ = 0;
    }
    return true;
  }

  // REQUIRES: !empty().
  Popped pop() {
    AREAL_CHECK(!empty());
    const QueueKey first = take_first();
    if (const QueueKey* soon = keys_.soon()) fetch(*soon);
    const std::uint64_t slot = first.number & kSlotMask;
    Popped popped{first.at, first.number, std::move(slots_[slot].event)};
    release_slot(slot);
    return popped;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // REQUIRES: !empty().
  [[nodiscard]] Instant next_time() { return AREAL_CHECK(!empty()), first_key().at; }
  // Null if no event with this number waits. Good until the next change of the queue.
  [[nodiscard]] const Event* find(std::uint64_t number) const {
    const std::uint64_t slot = number & kSlotMask;
    const bool waits = number != 0 && slot < slots_.size() && slots_[slot].number == number;
    return waits ? &slots_[slot].event : nullptr;
  }

  // Calls visit(at, number, event) for every waiting event, in no order that means anything.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.number != 0) visit(slot.at, slot.number, slot.event);
    }
  }

  // `codec(writer, event)` writes one event; `codec(reader, event)` reads it.
  template <class Codec = PlainEventCodec>
  void save(StateWriter& writer, Codec codec = {}) const {
    std::vector<std::uint64_t> numbers;
    numbers.reserve(slots_.size());
    for (const Slot& slot : slots_) numbers.push_back(slot.number);
    std::vector<std::uint64_t> free;  // In the order in which they will be taken.
    for (std::uint64_t next = free_; next != 0; next = slots_[next - 1].next_free()) free.push_back(next - 1);
    writer.value(posted_);
    writer.value(numbers);
    writer.value(free);
    for_each([&](Instant at, std::uint64_t /*number*/, const Event& event) {
      writer.value(at);
      codec(writer, event);
    });
  }

  // False if the words are no queue; the queue is then empty.
  template <class Codec = PlainEventCodec>
  bool load(StateReader& reader, Codec codec = {}) {
    *this = {};
    std::vector<std::uint64_t> numbers;
    std::vector<std::uint64_t> free;
    reader.value(posted_);
    reader.value(numbers);
    reader.value(free);
    slots_.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 0) continue;
      slots_[i].number = numbers[i];
      reader.value(slots_[i].at);
      codec(reader, slots_[i].event);
    }
    if (reader.ok() && fits_together(free)) {
      link(free);
      return true;
    }
    *this = {};
    return false;
  }

 private:
  static constexpr int kSlotBits = 24;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
  // So few keys of cancelled events are not worth a search.
  static constexpr std::size_t kStaleMin = 64;

  struct Slot {
    std::uint64_t number = 0;  // 0: free.
    Instant at;                // Of a free slot: the next free one plus 1, or 0.
    Event event{};

    [[nodiscard]] std::uint64_t next_free() const { return static_cast<std::uint64_t>(at.ns); }
  };

  std::uint64_t take_slot() {
    if (free_ == 0) return new_slot();
    const std::uint64_t place = free_ - 1;
    free_ = slots_[place].next_free();
    return place;
  }

  [[gnu::noinline]] std::uint64_t new_slot() {
    AREAL_CHECK(slots_.size() < kSlotMask);
    slots_.emplace_back();
    return slots_.size() - 1;
  }

  void release_slot(std::uint64_t place) {
    Slot& slot = slots_[place];
    slot.number = 0;
    slot.at.ns = static_cast<std::int64_t>(free_);
    if constexpr (!std::is_trivially_destructible_v<Event>) slot.event = {};
    free_ = place + 1;
    --size_;
  }

  [[nodiscard]] bool is_stale(const QueueKey& key) const { return slots_[key.number & kSlotMask].number != key.number; }

  // Takes the least key of an event that waits. REQUIRES: !empty().
  QueueKey take_first() {
    if (keys_.is_run_first()) [[likely]] {
      const QueueKey first = keys_.run_front();
      keys_.pop_run();
      if (!is_stale(first)) [[likely]]
        return first;
      --stale_;
    }
    return find_and_take_first();
  }
  [[gnu::noinline]] QueueKey find_and_take_first() {
    const QueueKey first = first_key();
    keys_.pop();
    return first;
  }

  [[gnu::noinline]] const QueueKey& first_key() {
    while (true) {
      if (keys_.must_fill()) fill_keys();
      const QueueKey& first = keys_.front();
      if (!is_stale(first)) return first;
      keys_.pop();
      --stale_;
    }
  }
  void fill_keys() {
    keys_.fill();
    keys_.visit_next([this](const QueueKey& key) { fetch(key); });
  }
  void fetch(const QueueKey& key) const { __builtin_prefetch(slots_.data() + (key.number & kSlotMask)); }

  // Numbers name their own slots and were all given; the free list names every free slot once.
  [[nodiscard]] bool fits_together(const std::vector<std::uint64_t>& free) const {
    std::vector<bool> is_free(slots_.size(), false);
    for (const std::uint64_t slot : free) {
      if (slot >= slots_.size() || slots_[slot].number != 0 || is_free[slot]) return false;
      is_free[slot] = true;
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::uint64_t number = slots_[i].number;
      if (number == 0 && !is_free[i]) return false;
      if (number != 0 && ((number & kSlotMask) != i || (number >> kSlotBits) > posted_)) return false;
    }
    return true;
  }

  // Makes the free list, and the order of what waits, from slots that fit together.
  void link(const std::vector<std::uint64_t>& free) {
    for (std::size_t i = free.size(); i-- > 0;) {
      slots_[free[i]].at.ns = static_cast<std::int64_t>(free_);
      free_ = free[i] + 1;
    }
    std::vector<QueueKey> keys;
    for_each([&](Instant at, std::uint64_t number, const Event& /*event*/) { keys.push_back({at, number}); });
    std::ranges::stable_sort(keys, {}, &QueueKey::number);
    for (const QueueKey& key : keys) keys_.push(key);
    size_ = keys.size();
  }

  KeyLadder keys_;
  BigVector<Slot> slots_;
  std::uint64_t free_ = 0;  // The first free slot plus 1, or 0.
  std::uint64_t posted_ = 0;
  std::size_t size_ = 0;
  std::size_t stale_ = 0;  // Keys of cancelled events that are still there.
};

}  // namespace areal::sim
