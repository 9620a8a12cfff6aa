// Runs a range of seeds in worker processes, which write their outcomes into shared memory.
//
// Processes and not threads: a seed that brings its process down is one broken seed, and the rest goes on. The room is
// built before, and shared by all. Not thread-safe: call it while the process has one thread.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "engine/base/result.h"
#include "sim/cli/loaded.h"
#include "sim/cli/seeds_report.h"

namespace areal::cli {

struct PoolWork {
  sim::Profile profile = sim::Profile::kCalm;
  SeedRange range;
  unsigned jobs = 1;
  unsigned recheck_percent = kRecheckPercent;  // Of the seeds that hold.
};

struct PoolProgress {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  double elapsed_s = 0;
};

class SeedPool {
 public:
  // Errors: kNoMemory if there is no memory for all outcomes.
  static Result<std::unique_ptr<SeedPool>> make(const Loaded& loaded, const PoolWork& work);
  ~SeedPool();

  // Runs all seeds; `tell` is called about four times a second. False if it was interrupted (SIGINT, SIGTERM): the
  // workers are gone then, and what was done is kept. Errors: kIo if no process could be started.
  Result<bool> run(const std::function<void(const PoolProgress&)>& tell);

  [[nodiscard]] std::span<const SeedOutcome> outcomes() const;
  [[nodiscard]] std::span<const SeedDetail> details() const;
  [[nodiscard]] double wall_s() const { return wall_s_; }

 private:
  struct Shared;
  class Signals;
  SeedPool(const Loaded& loaded, const PoolWork& work) : loaded_(loaded), work_(work) {}

  [[nodiscard]] std::uint64_t count() const { return work_.range.last - work_.range.first + 1; }
  bool start_worker(unsigned worker);
  [[noreturn]] void work(unsigned worker);
  void reap();
  void stop_workers();
  [[nodiscard]] PoolProgress progress() const;

  const Loaded& loaded_;
  PoolWork work_;
  Shared* shared_ = nullptr;
  SeedOutcome* outcomes_ = nullptr;
  SeedDetail* details_ = nullptr;
  std::vector<int> pids_;  // By worker; 0: it is not running.
  double began_s_ = 0;
  double wall_s_ = 0;
};

}  // namespace areal::cli
