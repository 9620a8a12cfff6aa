#include "engine/real/host/worker.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace areal::host {
namespace {

// Signals of the process are its loop's: a handler here would run beside the loop, and cut waits for files short.
void block_signals() {
  sigset_t all{};
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

struct Worker::Impl {
  explicit Impl(Loop& owner) : loop(owner), thread([this] { work(); }) {}

  void work() {
    block_signals();
    std::unique_lock lock(mutex);
    while (true) {
      wakes.wait(lock, [this] { return ends || !tasks.empty(); });
      if (tasks.empty()) return;
      auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      std::function<void()> result = task();
      lock.lock();
      if (!ends && result) loop.post(std::move(result));
    }
  }

  Loop& loop;
  std::mutex mutex;
  std::condition_variable wakes;
  std::deque<std::function<std::function<void()>()>> tasks;
  bool ends = false;
  std::thread thread;  // Last: it uses the others.
};

Worker::Worker(Loop& loop) : impl_(std::make_unique<Impl>(loop)) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->wakes.notify_one();
  impl_->thread.join();
}

void Worker::run(std::function<std::function<void()>()> task) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->tasks.push_back(std::move(task));
  }
  impl_->wakes.notify_one();
}

}  // namespace areal::host
