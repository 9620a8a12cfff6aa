// What a recording says about its run besides the trace; the same values for writer and readers.
//
// Nothing here may hold a host, a path, a time of day or a job count: two recordings of one run are equal byte for
// byte.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/ids.h"

namespace areal::record {

struct RunInfo {
  std::string scenario_name;
  std::string scenario_text;  // Resolved: every default filled in.
  std::string half;           // "with_defect", "without_defect", or empty where there is no defect.
  std::string program;        // Name and version of the program.
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> overrides;
};

struct NodeRow {
  NodeId id;
  std::string name;
  std::string role;
  HostId host;
  std::vector<std::string> slots;  // Names of its protocols, by slot. Without commas.
};

struct ViolationRow {
  std::string invariant;
  std::string verdict;  // "safety", "liveness", ...
  std::uint64_t seq = 0;
  NodeId node;
  std::string message;
};

// How a run ended.
struct RunEnd {
  std::string verdict;
  std::vector<std::pair<std::string, std::uint64_t>> counts;
};

}  // namespace areal::record
