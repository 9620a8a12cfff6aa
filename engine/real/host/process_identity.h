// Who a process is: its pid and when it started, so that another process with the pid of a dead one is not taken for
// it.
//
// From /proc. Free functions without state, safe on any thread; what they say may be old a moment later.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace areal::host {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // Since the start of the machine: field 22 of /proc/PID/stat.
  bool operator==(const ProcessIdentity&) const = default;
};

struct ProcessInfo {
  ProcessIdentity identity{};
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';  // 'Z': a zombie.
};

// A line of /proc/PID/stat; nothing if it is none. The name of a program may hold spaces and brackets.
std::optional<ProcessInfo> parse_process(std::string_view line);

// Nothing if there is no such process. A zombie is one.
std::optional<ProcessInfo> read_process(pid_t pid);
// REQUIRES: /proc is mounted.
ProcessIdentity own_identity();

// Identity still matches and it is no zombie: a zombie has given back all but its exit code, and one that is not our
// child can never be reaped by us (spec/transfer.md 6.3).
bool is_alive(const ProcessIdentity& process);

// By pid.
std::vector<ProcessInfo> all_processes();
// Children of `root`, their children and so on, parents before children; zombies are left out. None if `root` is gone.
std::vector<ProcessIdentity> descendants_of(const ProcessIdentity& root);

// Differs after every start of the machine, as start_ticks do not.
std::string boot_id();

}  // namespace areal::host
