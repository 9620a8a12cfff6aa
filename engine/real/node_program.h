// One real process of a run: its node's protocols on real ports, recorded, until it is told to end.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/base/ids.h"

namespace areal::real {

struct NodeProgramOptions {
  std::filesystem::path folder;  // Of the run.
  std::string node;              // Name, as in traces.
  Incarnation incarnation = 1;
  std::uint16_t port = 0;     // To listen on; 0: any free one.
  bool prints_notes = false;  // One line a note on stdout, for whoever started the run.
};

// Blocks until SIGTERM, or until its starter is gone. Returns the exit status: 0 ended when told to, 64 wrong options
// or scenario, 70 the system refused something; why is on stderr.
int run_node(const NodeProgramOptions& options);

}  // namespace areal::real
