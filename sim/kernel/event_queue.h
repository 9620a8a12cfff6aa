// What happens next: events in the exact order (time, number), the number given at posting.
//
// The heap holds keys of 16 bytes; events stay where they are in a vector of slots with a free list. A number is a
// count of posts with the event's slot in its low bits, so cancel() finds the event at once and the order is still the
// order of posting. A cancelled event leaves its key behind, which is dropped when it comes up or when such keys are
// the most.
//
// A value: copies go their own ways, and save() and load() carry it through words. Event must be default-constructible
// and movable. Not thread-safe.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/state.h"
#include "engine/base/time.h"

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
    const std::uint32_t slot = take_slot();
    const std::uint64_t number = (++posted_ << kSlotBits) | slot;
    slots_[slot] = {number, at, std::move(event)};
    ++size_;
    push_key({at, number});
    return number;
  }

  // False if no event with this number waits.
  bool cancel(std::uint64_t number) {
    const std::uint64_t slot = number & kSlotMask;
    if (number == 0 || slot >= slots_.size() || slots_[slot].number != number) return false;
    release_slot(static_cast<std::uint32_t>(slot));
    if (keys_.size() > 64 && keys_.size() > 2 * size_) compact();
    drop_stale_top();
    return true;
  }

  // REQUIRES: !empty().
  Popped pop() {
    AREAL_CHECK(!empty());
    const Key top = keys_.front();
    const auto slot = static_cast<std::uint32_t>(top.number & kSlotMask);
    Popped popped{top.at, top.number, std::move(slots_[slot].event)};
    release_slot(slot);
    pop_key();
    drop_stale_top();
    return popped;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // REQUIRES: !empty().
  [[nodiscard]] Instant next_time() const { return AREAL_CHECK(!empty()), keys_.front().at; }
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
    for (const Slot& slot : slots_) numbers.push_back(slot.number);
    writer.value(posted_);
    writer.value(numbers);
    writer.value(free_);
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
    reader.value(posted_);
    reader.value(numbers);
    reader.value(free_);
    slots_.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 0) continue;
      slots_[i].number = numbers[i];
      reader.value(slots_[i].at);
      codec(reader, slots_[i].event);
      ++size_;
      push_key({slots_[i].at, numbers[i]});
    }
    if (reader.ok() && fits_together()) return true;
    *this = {};
    return false;
  }

 private:
  static constexpr int kSlotBits = 24;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
  static constexpr std::size_t kArity = 4;

  struct Key {
    Instant at;
    std::uint64_t number = 0;
    bool operator<(const Key& other) const {
      return at.ns != other.at.ns ? at.ns < other.at.ns : number < other.number;
    }
  };
  struct Slot {
    std::uint64_t number = 0;  // 0: free.
    Instant at;
    Event event{};
  };

  std::uint32_t take_slot() {
    if (free_.empty()) {
      AREAL_CHECK(slots_.size() < kSlotMask);
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void release_slot(std::uint32_t slot) {
    slots_[slot] = {};
    free_.push_back(slot);
    --size_;
  }

  [[nodiscard]] bool is_stale(const Key& key) const { return slots_[key.number & kSlotMask].number != key.number; }

  // The first key, if there is one, is always of a waiting event.
  void drop_stale_top() {
    while (!keys_.empty() && is_stale(keys_.front())) pop_key();
  }

  void compact() {
    std::vector<Key> live;
    live.reserve(size_);
    for (const Key& key : keys_) {
      if (!is_stale(key)) live.push_back(key);
    }
    keys_ = std::move(live);
    for (std::size_t i = keys_.size() / kArity + 1; i-- > 0;) sift_down(i);
  }

  void push_key(Key key) {
    std::size_t place = keys_.size();
    keys_.push_back(key);
    while (place > 0) {
      const std::size_t parent = (place - 1) / kArity;
      if (!(key < keys_[parent])) break;
      keys_[place] = keys_[parent];
      place = parent;
    }
    keys_[place] = key;
  }

  void pop_key() {
    keys_.front() = keys_.back();
    keys_.pop_back();
    sift_down(0);
  }

  void sift_down(std::size_t place) {
    if (place >= keys_.size()) return;
    const Key key = keys_[place];
    while (true) {
      const std::size_t first = place * kArity + 1;
      if (first >= keys_.size()) break;
      const std::size_t end = first + kArity < keys_.size() ? first + kArity : keys_.size();
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (keys_[child] < keys_[least]) least = child;
      }
      if (!(keys_[least] < key)) break;
      keys_[place] = keys_[least];
      place = least;
    }
    keys_[place] = key;
  }

  // Numbers name their own slots and were all given; the free list names every free slot once.
  [[nodiscard]] bool fits_together() const {
    std::vector<bool> is_free(slots_.size(), false);
    for (const std::uint32_t slot : free_) {
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

  std::vector<Key> keys_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint64_t posted_ = 0;
  std::size_t size_ = 0;
};

}  // namespace areal::sim
