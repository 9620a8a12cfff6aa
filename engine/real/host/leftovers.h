// What a run left behind on its machine: processes, leases of ports, shared memory, its folder.
//
// A process belongs to a run if its environment has AREAL_RUN_ID with the run's id, or one of its arguments holds the
// id. The calling process and those above it are left out: whoever asks may well name the run. Only what the calling
// user may look at is seen. Free functions without state, safe on any thread.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/real/host/process_identity.h"

namespace areal::host {

inline constexpr std::string_view kRunIdVariable = "AREAL_RUN_ID";

struct LeftoverQuery {
  std::string run_id;
  std::filesystem::path run_folder{};  // Empty: not looked at.
  std::filesystem::path shared_memory = "/dev/shm";
};

// One sentence each, in the order of the first line; empty: nothing is left. Leases count if their holder belongs to
// the run, or if nobody holds them though all processes could be looked at. kInvalid: no run's id.
Result<std::vector<std::string>> find_leftovers(const LeftoverQuery& query);

// By pid, without zombies.
std::vector<ProcessInfo> processes_of(std::string_view run_id);

}  // namespace areal::host
