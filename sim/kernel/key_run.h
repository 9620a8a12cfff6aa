// Keys in order, taken from the front; later ones may follow at the end.
//
// A value. Not thread-safe.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/kernel/queue_key.h"

namespace areal::sim {

class KeyRun {
 public:
  [[nodiscard]] bool empty() const { return next_ == end_; }
  [[nodiscard]] std::size_t size() const { return end_ - next_; }
  // REQUIRES: !empty().
  [[nodiscard]] const QueueKey& front() const { return keys_[next_]; }
  [[nodiscard]] const QueueKey& back() const { return keys_[end_ - 1]; }
  void pop() { ++next_; }
  // The key that comes `ahead` behind the first, or null.
  [[nodiscard]] const QueueKey* find(std::size_t ahead) const {
    return ahead < size() ? &keys_[next_ + ahead] : nullptr;
  }
  [[nodiscard]] std::span<const QueueKey> keys() const { return {keys_.data() + next_, size()}; }

  // REQUIRES: `key` is not before back().
  void push(const QueueKey& key) {
    if (next_ == end_) clear();
    if (end_ == keys_.size()) keys_.resize(std::max<std::size_t>(2 * end_, 64));
    keys_[end_++] = key;
  }

  void clear() { next_ = end_ = 0; }
  // Room for `count` keys, and `spare` more behind them, in place of those that were there; the caller writes them in
  // order.
  QueueKey* reset(std::size_t count, std::size_t spare) {
    if (keys_.size() < count + spare) keys_.resize(count + spare);
    next_ = 0;
    end_ = count;
    return keys_.data();
  }
  // Takes the first `count` of `keys`, which are in order, and leaves it others.
  void take(std::vector<QueueKey>& keys, std::size_t count) {
    keys_.swap(keys);
    next_ = 0;
    end_ = count;
  }

 private:
  std::vector<QueueKey> keys_;
  std::size_t next_ = 0;
  std::size_t end_ = 0;
};

}  // namespace areal::sim
