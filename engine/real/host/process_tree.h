// A process with all its descendants, to be signalled and waited for as one; no signal ever reaches a reused pid.
//
// Each member is held by a pidfd that was compared with its start time (INV-KILL-NOREUSE). Where no pidfd can be had,
// because a process just ends (EINVAL, ESRCH) or none are left, the start time is compared before each signal
// (spec/transfer.md 6.2).
#pragma once
#include <vector>

#include "engine/base/result.h"
#include "engine/base/time.h"
#include "engine/real/host/descriptor.h"
#include "engine/real/host/process_identity.h"

namespace areal::host {

// Not thread-safe. No call blocks but wait().
class ProcessTree {
 public:
  // Dead ones, those that are in already and the calling process itself are left out.
  void add(const ProcessIdentity& process);
  // Those that `root` has now: whoever was given another parent before is not found. Reads all of /proc.
  void add_descendants(const ProcessIdentity& root);
  // Those of all members that still live: who was born since.
  void add_descendants();

  // To all that live; those that are gone do not count. Children get it before their parents (spec/transfer.md 6.1),
  // but SIGKILL after them, so that no parent sees its child killed and starts another.
  void signal(int number);
  // Those that still live; the others are forgotten. A zombie is dead.
  const std::vector<pid_t>& survivors();
  // Until all are dead or `timeout` is over.
  void wait(Duration timeout);

 private:
  struct Member {
    ProcessIdentity identity{};
    Descriptor pidfd;  // May be closed.
  };
  std::vector<Member> members_;
  std::vector<pid_t> survivors_;
};

// SIGTERM to `root` and all its descendants, `grace` to end, SIGKILL to whoever lives then, a second to die. Blocks.
// Whoever is dead already is a success; kTimeout with the pids: there are survivors, and it may be tried again.
Status kill_tree(const ProcessIdentity& root, Duration grace);

}  // namespace areal::host
