// Forks and runs the program of a recipe; what a new child does before its program is here.
#pragma once
#include "engine/base/result.h"
#include "engine/real/host/descriptor.h"
#include "engine/real/host/os_process.h"

namespace areal::host {

struct StartedChild {
  pid_t pid = 0;
  Descriptor output;   // Of kPipe: the end to read from, not blocking.
  Descriptor trouble;  // Not blocking; holds a StartTrouble if the program could not be run, and ends when it runs.
};

// What kept a child from its program; written by the child as it is.
struct StartTrouble {
  std::int32_t step = 0;  // See trouble_text().
  std::int32_t error = 0;
};

// The child is its caller's to reap. Errors as OsProcess::start() has them.
Result<StartedChild> start_child(const ProcessRecipe& recipe);

// What `trouble` holds, for people; empty if the program was run.
std::string trouble_text(const Descriptor& trouble);

}  // namespace areal::host
