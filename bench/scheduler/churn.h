// B6 CHURN-16: 16 engines and 4 training ranks that beat once a second, crash, are found out and restarted, while
// samples are generated, filtered by staleness and trained on, and every step updates the engines.
//
// A process beats each second, and crashes after an exponential time of mean 200 s. Each second a monitor looks who has
// been silent for more than 3 s; such a process is back 20 s later. An engine generates samples of an exponential time
// of mean 1 s; one whose weights are more than 2 versions old when it is done is dropped. With kBatch samples and all
// ranks alive a step begins: 1.5 s on each rank; the last one to be done ends it, and each live engine holds the new
// version 50 ms later. A rank's crash voids its step. 600 s of virtual time; bench/peers/churn_simpy.py is the same
// model.
#pragma once
#include <array>
#include <cstddef>

#include "bench/scheduler/draws.h"
#include "bench/scheduler/hook.h"
#include "bench/scheduler/measured.h"
#include "engine/base/time.h"

namespace areal::bench {

struct ChurnEvent {
  enum class What : std::uint8_t { kBeat, kCrash, kBack, kLook, kSample, kRankDone, kUpdate };
  What what = What::kBeat;
  std::uint8_t process = 0;
  std::uint32_t version = 0;
};

struct ChurnCounts {
  std::uint64_t events = 0;
  std::uint64_t order = 0;
};

template <class Queue>
class Churn {
 public:
  static constexpr std::size_t kEngines = 16;
  static constexpr std::size_t kRanks = 4;
  static constexpr std::size_t kProcesses = kEngines + kRanks;  // Engines first.
  static constexpr std::uint32_t kStaleness = 2;
  static constexpr std::uint64_t kBatch = 28;
  static constexpr Instant kEnd{600'000'000'000};

  struct Tables {
    ExpTable<> life{200e9};
    ExpTable<> generation{1e9};
  };

  Churn(const Tables& tables, std::uint64_t seed, Hook hook) : tables_(tables), random_(seed), hook_(hook) {}

  ChurnCounts run() {
    for (std::uint8_t i = 0; i < kProcesses; ++i) come_up(i);
    post(kLookEvery, {.what = What::kLook});
    while (true) {
      const auto next = queue_.pop();
      if (next.at > kEnd) break;
      now_ = next.at;
      ++counts_.events;
      const std::uint64_t what = static_cast<std::uint64_t>(next.event.what);
      add_to_order(counts_.order, what * 32 + next.event.process);
      hook_.report(now_, next.event.process);
      happen(next.event);
    }
    return counts_;
  }

 private:
  using What = ChurnEvent::What;
  static constexpr Duration kBeatEvery = 1_s;
  static constexpr Duration kLookEvery = 1_s;
  static constexpr Duration kSilence = 3_s;
  static constexpr Duration kRestart = 20_s;
  static constexpr Duration kStep = 1500_ms;
  static constexpr Duration kTransfer = 50_ms;

  struct Process {
    bool alive = false;
    bool found = false;  // Its death is known; it is being restarted.
    Instant last_beat;
    std::uint32_t version = 0;
    std::uint64_t beat = 0;  // Numbers of what it waits for, to be cancelled when it dies.
    std::uint64_t work = 0;
  };

  std::uint64_t post(Duration after, const ChurnEvent& event) { return queue_.post(now_ + after, event); }
  static bool is_engine(std::size_t process) { return process < kEngines; }

  void happen(const ChurnEvent& event) {
    Process& process = processes_[event.process];
    switch (event.what) {
      case What::kBeat:
        process.last_beat = now_;
        process.beat = post(kBeatEvery, event);
        break;
      case What::kCrash:
        crash(event.process);
        break;
      case What::kBack:
        come_up(event.process);
        break;
      case What::kLook:
        look();
        break;
      case What::kSample:
        sample_done(event);
        break;
      case What::kRankDone:
        process.work = 0;
        if (--ranks_busy_ == 0) end_step();
        break;
      case What::kUpdate:
        if (process.alive) process.version = event.version;
        break;
    }
  }

  void come_up(std::uint8_t index) {
    Process& process = processes_[index];
    process = {.alive = true, .last_beat = now_, .version = version_};
    process.beat = post(kBeatEvery, {.what = What::kBeat, .process = index});
    post({tables_.life.draw(random_)}, {.what = What::kCrash, .process = index});
    if (is_engine(index)) {
      generate(index);
    } else {
      begin_step();
    }
  }

  void crash(std::uint8_t index) {
    Process& process = processes_[index];
    process.alive = false;
    queue_.cancel(process.beat);
    if (is_engine(index)) {
      queue_.cancel(process.work);
    } else if (ranks_busy_ > 0) {
      void_step();
    }
  }

  void look() {
    for (std::uint8_t i = 0; i < kProcesses; ++i) {
      Process& process = processes_[i];
      if (process.found || now_ - process.last_beat <= kSilence) continue;
      process.found = true;
      post(kRestart, {.what = What::kBack, .process = i});
    }
    post(kLookEvery, {.what = What::kLook});
  }

  void generate(std::uint8_t index) {
    Process& process = processes_[index];
    process.work =
        post({tables_.generation.draw(random_)}, {.what = What::kSample, .process = index, .version = process.version});
  }

  void sample_done(const ChurnEvent& event) {
    if (version_ - event.version <= kStaleness) {
      ++ready_;
      begin_step();
    }
    generate(event.process);
  }

  void begin_step() {
    if (ranks_busy_ > 0 || ready_ < kBatch) return;
    for (std::size_t i = kEngines; i < kProcesses; ++i) {
      if (!processes_[i].alive) return;
    }
    ready_ -= kBatch;
    ranks_busy_ = kRanks;
    for (std::uint8_t i = kEngines; i < kProcesses; ++i) {
      processes_[i].work = post(kStep, {.what = What::kRankDone, .process = i});
    }
  }

  void void_step() {
    for (std::size_t i = kEngines; i < kProcesses; ++i) {
      if (processes_[i].work != 0) queue_.cancel(processes_[i].work);
      processes_[i].work = 0;
    }
    ranks_busy_ = 0;
  }

  void end_step() {
    ++version_;
    for (std::uint8_t i = 0; i < kEngines; ++i) {
      if (processes_[i].alive) post(kTransfer, {.what = What::kUpdate, .process = i, .version = version_});
    }
    begin_step();
  }

  const Tables& tables_;
  Xorshift random_;
  Hook hook_;
  Queue queue_;
  Instant now_;
  std::array<Process, kProcesses> processes_;
  std::uint32_t version_ = 0;
  std::uint64_t ready_ = 0;
  std::size_t ranks_busy_ = 0;
  ChurnCounts counts_;
};

// Seeds 1 to `seeds`, one after another in this process.
template <class Queue>
Measured run_churn(std::uint64_t seeds, Hook hook) {
  const typename Churn<Queue>::Tables tables;
  Measured result;
  const Stopwatch watch;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const ChurnCounts counts = Churn<Queue>(tables, seed, hook).run();
    add_to_order(result.order, counts.order);
    result.events += counts.events;
  }
  result.ns = watch.ns();
  return result;
}

}  // namespace areal::bench
