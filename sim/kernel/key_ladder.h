// The order of waiting keys, at a cost for each that does not grow with their number.
//
// From near to far: a sorted run; rungs, each a row of buckets of equal width that covers one bucket of the rung
// before; and what lies behind the first rung, unsorted. When the run is used up, the next bucket is sorted and becomes
// the run; one that holds too many keys of different times is spread over a rung of its own first. When all rungs are
// used up, what lies behind them makes a new first rung. So widths follow from the keys that wait, not from a setting:
// the median of a sample chooses them, and about half of the keys leave the unsorted part each time, however far away
// others are.
//
// A key that belongs into the run's time goes to its end if it fits there, else to a small heap beside it. When the
// heap outgrows the run, both are spread over a new rung.
//
// Ladder queue: Tang, Goh, Thng, TOMACS 15(3), 2005; the heap, the median and the bounded depth are ours. A value. Not
// thread-safe.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/kernel/big_pages.h"
#include "sim/kernel/key_buckets.h"
#include "sim/kernel/key_heap.h"
#include "sim/kernel/key_run.h"
#include "sim/kernel/queue_key.h"

namespace areal::sim {

class KeyLadder {
 public:
  // REQUIRES: key.number is greater than all before.
  void push(const QueueKey& key) {
    if (key.at.ns <= run_last_) {
      push_near(key);
    } else if (key.at.ns > covered_) {
      push_far(key);
    } else {
      push_bucket(key);
    }
  }

  // The least key is not known before fill().
  [[nodiscard]] bool must_fill() const { return run_.empty() && heap_.empty(); }
  // REQUIRES: must_fill(), and a key waits.
  void fill();
  // The least key. Good until the next change. REQUIRES: !must_fill().
  [[nodiscard]] const QueueKey& front() const { return is_heap_first() ? heap_.front() : run_.front(); }
  // Takes the least key away. REQUIRES: !must_fill().
  void pop();

  // The quick way: the least key is the run's, as nearly always. Then run_front() is front(), and pop_run() is pop().
  [[nodiscard]] bool is_run_first() const { return heap_.empty() && !run_.empty(); }
  [[nodiscard]] const QueueKey& run_front() const { return run_.front(); }
  void pop_run() { run_.pop(); }

  // A key that will come soon, or null: to fetch what it stands for.
  [[nodiscard]] const QueueKey* soon() const { return run_.find(kSoon); }
  // Calls visit(key) for some keys that follow the run, for the same purpose.
  template <class Visit>
  void visit_next(Visit&& visit) const {
    if (depth_ == 0) return;
    const Rung& rung = rungs_[depth_ - 1];
    if (rung.next + 1 >= rung.count) return;
    blocks_.fetch(rung.buckets[rung.next + 1]);
    blocks_.visit_newest(rung.buckets[rung.next], visit);
  }

  // Drops the keys for which drop(key) is true.
  template <class Drop>
  void drop_if(Drop&& drop) {
    gather_all();
    std::erase_if(far_, drop);
  }

 private:
  static constexpr std::size_t kSoon = 6;

  struct Rung {
    std::int64_t start = 0;
    std::int64_t last = 0;   // The last bucket reaches to here, however wide it is then.
    unsigned shift = 0;      // A bucket is 2^shift wide.
    std::uint32_t next = 0;  // The first bucket that was not taken yet.
    std::int64_t taken = 0;  // Keys up to here belong into what follows from taken buckets, or were there before.
    std::uint32_t count = 0;
    BigVector<KeyBucket> buckets;  // Not fewer than `count`.

    [[nodiscard]] std::uint64_t place_of(std::int64_t at) const {
      return std::min<std::uint64_t>(offset_from(start, at) >> shift, count - 1);
    }
    [[nodiscard]] std::int64_t start_of(std::uint64_t place) const {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + (place << shift));
    }
  };

  [[nodiscard]] bool is_heap_first() const { return !heap_.empty() && (run_.empty() || heap_.front() < run_.front()); }

  void push_near(const QueueKey& key);
  void push_far(const QueueKey& key);
  // REQUIRES: run_last_ < key.at <= covered_.
  void push_bucket(const QueueKey& key) {
    std::size_t i = 0;
    while (key.at.ns <= rungs_[i].taken) ++i;
    const std::uint64_t place = rungs_[i].place_of(key.at.ns);
    blocks_.add(rungs_[i].buckets[place], key);
  }

  void take_bucket();
  void take_far();
  void spread_near();
  void settle(std::optional<std::int64_t> last);
  void start_rung(std::int64_t start, std::uint64_t extent, std::uint64_t median, std::optional<std::int64_t> last);
  void drop_used_rungs();
  void gather_all();

  KeyRun run_;
  KeyHeap heap_;
  std::int64_t run_last_ = kLeastTime;  // Keys up to here belong into the run or the heap.
  std::int64_t covered_ = kLeastTime;   // Keys behind this belong into the far part: the end of the first rung, if any.
  std::size_t depth_ = 0;               // Rungs in use.
  std::vector<Rung> rungs_;
  KeyBlocks blocks_;
  std::vector<QueueKey> far_;  // In the order of numbers, as in every bucket.
  // Keys on their way into the run or a rung, in the order of numbers: the first `gathered_` items.
  std::vector<QueueKey> scratch_;
  std::size_t gathered_ = 0;
};

}  // namespace areal::sim
