// The one loop of a process: handlers run on its thread one after the other, timers fire, other threads post.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/result.h"
#include "engine/base/time.h"

namespace asio {
class io_context;
}

namespace areal::host {

// One armed timer; never used twice.
struct LoopTimer {
  Instant at{};
  std::uint64_t number = 0;  // 0: none.
  auto operator<=>(const LoopTimer&) const = default;
};

// Not thread-safe but where it says so: called before run(), or by handlers. Handlers do not throw.
class Loop {
 public:
  // The machine's monotonic clock: the same for all processes of one machine.
  static Instant machine_now();

  // `epoch`: the machine_now() at which now() is zero; processes that agree on it have one axis of time. kIo: the
  // system gives no loop.
  static Result<std::unique_ptr<Loop>> create(Instant epoch = machine_now());
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // Handlers that did not run yet are dropped. Whoever holds sockets of this loop goes first.
  ~Loop();

  // Runs handlers on this thread until stop(). May be called again afterwards.
  void run() noexcept;
  // Ends run() after the handler under way, or the next run() at once. Thread-safe.
  void stop();
  // Runs `handler` on the loop, in the order of the calls. Thread-safe.
  void post(std::function<void()> handler);

  // Runs `handler` once when `after` has passed; of those due at one instant, in the order of arming.
  LoopTimer arm(Duration after, std::function<void()> handler);
  // A cancelled timer never fires. Says whether it was still to fire.
  bool cancel(const LoopTimer& timer);

  [[nodiscard]] Instant now() const;

  // For the sockets of this layer.
  [[nodiscard]] asio::io_context& context();

 private:
  struct Impl;
  explicit Loop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace areal::host
