// std::priority_queue with the interface of EventQueue: the order that must come out, and the speed to beat.
#pragma once
#include <cstdint>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/base/time.h"

namespace areal::bench {

template <class Event>
class ReferenceQueue {
 public:
  struct Popped {
    Instant at;
    std::uint64_t number = 0;
    Event event;
  };

  std::uint64_t post(Instant at, const Event& event) {
    queue_.push({at, ++posted_, event});
    return posted_;
  }
  bool cancel(std::uint64_t number) { return cancelled_.insert(number).second; }
  Popped pop() {
    drop_cancelled();
    Popped first = queue_.top();
    queue_.pop();
    return first;
  }
  bool empty() {
    drop_cancelled();
    return queue_.empty();
  }

 private:
  struct Later {
    bool operator()(const Popped& a, const Popped& b) const { return a.at != b.at ? a.at > b.at : a.number > b.number; }
  };

  void drop_cancelled() {
    while (!cancelled_.empty() && !queue_.empty() && cancelled_.erase(queue_.top().number) > 0) queue_.pop();
  }

  std::priority_queue<Popped, std::vector<Popped>, Later> queue_;
  std::unordered_set<std::uint64_t> cancelled_;
  std::uint64_t posted_ = 0;
};

}  // namespace areal::bench
