#include "sim/cli/seed_pool.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "sim/cli/seed_run.h"

namespace areal::cli {
namespace {

constexpr unsigned kWorkersMax = 256;
constexpr long kTellEveryNs = 250'000'000;

// Zero pages that workers and parent share; what is never touched costs nothing.
template <class T>
T* share(std::uint64_t count) {
  void* const memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

template <class T>
void unshare(T* memory, std::uint64_t count) {
  if (memory != nullptr) munmap(memory, count * sizeof(T));
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string death_text(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("its process ended by itself with code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* const hint = signal == SIGKILL ? "; perhaps the machine ran out of memory" : "";
  return fmt::format("its process was ended by signal {} ({}){}", signal, strsignal(signal), hint);
}

}  // namespace

struct SeedPool::Shared {
  std::atomic<std::uint64_t> next;    // The first seed that nobody has taken, as an index.
  std::atomic<std::uint64_t> failed;  // For progress.
  std::atomic<std::uint64_t> done;
  std::array<std::atomic<std::uint64_t>, kWorkersMax> current;  // Index + 1 of what each worker runs; 0: nothing.
};

// Holds back the signals that the parent waits for; what the caller ignores stays ignored.
class SeedPool::Signals {
 public:
  Signals() {
    sigemptyset(&waited_);
    sigaddset(&waited_, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM}) {
      struct sigaction present{};
      sigaction(signal, nullptr, &present);
      if (present.sa_handler != SIG_IGN) sigaddset(&waited_, signal);
    }
    sigprocmask(SIG_BLOCK, &waited_, &before_);
  }
  ~Signals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal; -1 if none came in time.
  [[nodiscard]] int wait() const {
    const timespec most{0, kTellEveryNs};
    return sigtimedwait(&waited_, nullptr, &most);
  }

 private:
  sigset_t waited_{};
  sigset_t before_{};
};

Result<std::unique_ptr<SeedPool>> SeedPool::make(const Loaded& loaded, const PoolWork& work) {
  std::unique_ptr<SeedPool> pool(new SeedPool(loaded, work));
  pool->shared_ = share<Shared>(1);
  pool->outcomes_ = share<SeedOutcome>(pool->count());
  pool->details_ = share<SeedDetail>(pool->count());
  if (pool->shared_ == nullptr || pool->outcomes_ == nullptr || pool->details_ == nullptr) {
    return Error{Errc::kNoMemory, fmt::format("no memory for the outcomes of {} seeds", pool->count())};
  }
  return pool;
}

SeedPool::~SeedPool() {
  stop_workers();
  unshare(shared_, 1);
  unshare(outcomes_, count());
  unshare(details_, count());
}

std::span<const SeedOutcome> SeedPool::outcomes() const { return {outcomes_, count()}; }
std::span<const SeedDetail> SeedPool::details() const { return {details_, count()}; }

PoolProgress SeedPool::progress() const {
  return {shared_->done.load(std::memory_order_relaxed), shared_->failed.load(std::memory_order_relaxed),
          now_s() - began_s_};
}

void SeedPool::work(unsigned worker) {
  std::atomic<std::uint64_t>& current = shared_->current[worker];
  for (;;) {
    const std::uint64_t index = shared_->next.fetch_add(1);
    if (index >= count()) break;
    current.store(index + 1);
    const unsigned percent = count() == 1 ? 100 : work_.recheck_percent;
    SeedOutcome& outcome = outcomes_[index];
    run_seed(loaded_, work_.profile, work_.range.first + index, percent, outcome, details_[index]);
    if (exit_code(outcome) != 0) shared_->failed.fetch_add(1);
    shared_->done.fetch_add(1);
    current.store(0);
  }
  _exit(0);  // Not exit(): buffers and handlers belong to the parent.
}

bool SeedPool::start_worker(unsigned worker) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid == 0) {
    // A worker does not outlive its parent, however that ends.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    work(worker);
  }
  pids_[worker] = pid;
  return true;
}

void SeedPool::reap() {
  for (unsigned worker = 0; worker < pids_.size(); ++worker) {
    int status = 0;
    if (pids_[worker] == 0 || waitpid(pids_[worker], &status, WNOHANG) != pids_[worker]) continue;
    pids_[worker] = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    const std::uint64_t current = shared_->current[worker].exchange(0);
    if (current != 0 && outcomes_[current - 1].end == SeedEnd::kNotRun) {
      set_broken(death_text(status), outcomes_[current - 1], details_[current - 1]);
      shared_->failed.fetch_add(1);
      shared_->done.fetch_add(1);
    }
    if (shared_->next.load() < count()) static_cast<void>(start_worker(worker));
  }
}

void SeedPool::stop_workers() {
  for (int& pid : pids_) {
    if (pid == 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }
}

Result<bool> SeedPool::run(const std::function<void(const PoolProgress&)>& tell) {
  const Signals signals;
  began_s_ = now_s();
  const auto jobs = static_cast<unsigned>(std::min<std::uint64_t>(std::min(work_.jobs, kWorkersMax), count()));
  pids_.assign(jobs, 0);
  const auto any_running = [&] { return std::ranges::any_of(pids_, [](int pid) { return pid != 0; }); };
  for (unsigned worker = 0; worker < jobs; ++worker) static_cast<void>(start_worker(worker));
  if (!any_running()) return Error{Errc::kIo, fmt::format("no process could be started: {}", std::strerror(errno))};
  while (any_running()) {
    const int signal = signals.wait();
    if (signal == SIGINT || signal == SIGTERM) {
      stop_workers();
      wall_s_ = now_s() - began_s_;
      return false;
    }
    reap();
    tell(progress());
  }
  wall_s_ = now_s() - began_s_;
  // A worker that died between taking a seed and saying so, or that could not be replaced.
  for (std::uint64_t index = 0; index < count(); ++index) {
    if (outcomes_[index].end != SeedEnd::kNotRun) continue;
    set_broken("its process was lost before it ran", outcomes_[index], details_[index]);
  }
  return true;
}

}  // namespace areal::cli
