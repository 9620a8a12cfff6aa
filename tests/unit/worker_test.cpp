// The thread that does a loop's blocking work.
#include "engine/real/host/worker.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <memory>
#include <vector>

namespace areal::host {
namespace {

TEST(Worker, ResultsComeToTheLoopInTheOrderOfTheTasks) {
  const auto loop = Loop::create().value();
  Worker worker(*loop);
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) {
    auto words = std::make_shared<std::vector<int>>(1, i);  // As a checkpoint's: made here, changed there, used here.
    worker.run([i, words, &seen, &loop]() -> std::function<void()> {
      words->push_back(i);
      return [i, words, &seen, &loop] {
        EXPECT_EQ(*words, (std::vector<int>{i, i}));
        seen.push_back(i);
        if (i == 99) loop->stop();
      };
    });
  }
  loop->run();
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

// Signals of the process are its loop's: a handler on this thread would run beside it, and cut waits for files short.
TEST(Worker, GetsNoSignals) {
  const auto loop = Loop::create().value();
  Worker worker(*loop);
  bool is_blocked = false;
  worker.run([&]() -> std::function<void()> {
    sigset_t mask{};
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    const bool blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1;
    return [&, blocked] {
      is_blocked = blocked;
      loop->stop();
    };
  });
  loop->run();
  EXPECT_TRUE(is_blocked);
}

TEST(Worker, EndsWhenEverythingAskedForIsDone) {
  const auto loop = Loop::create().value();
  int done = 0;
  {
    Worker worker(*loop);
    for (int i = 0; i < 10; ++i) {
      worker.run([&]() -> std::function<void()> {
        ++done;
        return nullptr;
      });
    }
  }
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace areal::host
