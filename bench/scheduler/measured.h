// What a benchmark gives back, and the clock that it uses.
#pragma once
#include <cstdint>
#include <ctime>

namespace areal::bench {

struct Measured {
  std::uint64_t events = 0;
  std::uint64_t order = 0;  // A hash over the events in the order in which they happened.
  double ns = 0;            // Processor time of all events, without building what they need.

  [[nodiscard]] double ns_per_event() const { return ns / static_cast<double>(events); }
};

// Processor time of this thread: what others do on the machine counts less than with a wall clock.
class Stopwatch {
 public:
  Stopwatch() : start_(now_ns()) {}
  [[nodiscard]] double ns() const { return now_ns() - start_; }

 private:
  static double now_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  }

  double start_;
};

inline void add_to_order(std::uint64_t& order, std::uint64_t word) { order = order * 31 + word; }

}  // namespace areal::bench
