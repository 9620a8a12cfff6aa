#include "sim/cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace areal::cli {
namespace {

std::atomic<bool> was_asked{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a signal's
static_assert(std::atomic<bool>::is_always_lock_free);

void remember(int /*signal*/) { was_asked = true; }

}  // namespace

void watch_interrupts() {
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
  std::signal(SIGPIPE, remember);
}

bool interrupted() { return was_asked; }

}  // namespace areal::cli
