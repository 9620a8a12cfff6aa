// A heap of keys with four children a node: the least key first, log(n) each.
//
// A value. Not thread-safe.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/kernel/queue_key.h"

namespace areal::sim {

class KeyHeap {
 public:
  [[nodiscard]] bool empty() const { return keys_.empty(); }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  // REQUIRES: !empty().
  [[nodiscard]] const QueueKey& front() const { return keys_.front(); }
  // In no order that means anything.
  [[nodiscard]] const std::vector<QueueKey>& keys() const { return keys_; }
  void clear() { keys_.clear(); }

  void push(const QueueKey& key) {
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

  // REQUIRES: !empty().
  void pop() {
    const QueueKey key = keys_.back();
    keys_.pop_back();
    if (keys_.empty()) return;
    std::size_t place = 0;
    while (true) {
      const std::size_t first = place * kArity + 1;
      if (first >= keys_.size()) break;
      const std::size_t end = std::min(first + kArity, keys_.size());
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

 private:
  static constexpr std::size_t kArity = 4;

  std::vector<QueueKey> keys_;
};

}  // namespace areal::sim
