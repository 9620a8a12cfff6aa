// The scheduler's benchmarks by name, each through the queue that runs scenarios and through std::priority_queue.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench/scheduler/hook.h"
#include "bench/scheduler/measured.h"

namespace areal::bench {

enum class Through : std::uint8_t {
  kScheduler,  // EventQueue.
  kReference,  // std::priority_queue.
};

struct Case {
  std::string name;
  std::uint64_t size = 0;    // Waiting events, actors, pairs or seeds.
  std::uint64_t each = 0;    // Events an actor starts with.
  std::uint64_t events = 0;  // To be measured; for CHURN what the seeds give.
  Measured (*run)(const Case& what, Through through, Hook hook) = nullptr;
};

// Those of the report, from few waiting events to many. `quick`: so few events that all take a second.
std::vector<Case> all_cases(bool quick);
// hold-N, world-N, phold-NxM, sleepers-N, pingpong, pairs-N, churn-SEEDS; a case without `run` if the name is none.
Case find_case(std::string_view name);

}  // namespace areal::bench
