// A thread that does blocking work for a loop: tasks in, results posted back to the loop in the order of the tasks.
#pragma once
#include <functional>
#include <memory>

#include "engine/real/host/loop.h"

namespace areal::host {

class Worker {
 public:
  // `loop` outlives it.
  explicit Worker(Loop& loop);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Does what was asked for, drops the results, ends the thread.
  ~Worker();

  // Runs `task` on the thread; what it returns runs on the loop. Called by the loop only. Tasks do not throw.
  void run(std::function<std::function<void()>()> task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace areal::host
