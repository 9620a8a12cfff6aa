#include "engine/real/host/loop.h"

#include <asio.hpp>
#include <chrono>
#include <exception>
#include <map>
#include <string>
#include <utility>

namespace areal::host {

struct Loop::Impl {
  explicit Impl(Instant start) : epoch(start), alarm(context) {}

  // Sets the alarm for the earliest timer, if that changed.
  void set_alarm();
  void fire_due();

  Instant epoch;
  asio::io_context context{1};
  asio::steady_timer alarm;
  Instant alarm_at{};
  bool is_set = false;
  std::uint64_t last_number = 0;
  std::map<LoopTimer, std::function<void()>> timers;  // Ascending by time, then by number.
};

void Loop::Impl::set_alarm() {
  if (timers.empty()) return;  // An alarm for nothing does no harm.
  const Instant earliest = timers.begin()->first.at;
  if (is_set && alarm_at == earliest) return;
  is_set = true;
  alarm_at = earliest;
  alarm.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(epoch.ns + earliest.ns)));
  alarm.async_wait([this](const asio::error_code& error) {
    if (error) return;  // Set anew meanwhile.
    is_set = false;
    fire_due();
  });
}

void Loop::Impl::fire_due() {
  // Timers that handlers arm now wait for the next round, so that none can keep the loop for itself.
  const Instant now{(machine_now() - epoch).ns};
  const LoopTimer bound{now, last_number};
  while (!timers.empty() && timers.begin()->first <= bound) {
    const auto due = timers.extract(timers.begin());
    due.mapped()();
  }
  set_alarm();
}

Instant Loop::machine_now() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count()};
}

Result<std::unique_ptr<Loop>> Loop::create(Instant epoch) {
  try {
    return std::unique_ptr<Loop>(new Loop(std::make_unique<Impl>(epoch)));
  } catch (const std::exception& error) {
    return Error{Errc::kIo, std::string("no event loop: ") + error.what()};
  }
}

Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loop::~Loop() = default;

void Loop::run() noexcept {
  const auto work = asio::make_work_guard(impl_->context);
  impl_->context.restart();
  impl_->context.run();
}

// As a handler, so that a stop before run() is not lost.
void Loop::stop() {
  post([context = &impl_->context] { context->stop(); });
}

void Loop::post(std::function<void()> handler) { asio::post(impl_->context, std::move(handler)); }

LoopTimer Loop::arm(Duration after, std::function<void()> handler) {
  const LoopTimer timer{now() + after, ++impl_->last_number};
  impl_->timers.emplace(timer, std::move(handler));
  impl_->set_alarm();
  return timer;
}

bool Loop::cancel(const LoopTimer& timer) { return impl_->timers.erase(timer) > 0; }

Instant Loop::now() const { return {(machine_now() - impl_->epoch).ns}; }

asio::io_context& Loop::context() { return impl_->context; }

}  // namespace areal::host
