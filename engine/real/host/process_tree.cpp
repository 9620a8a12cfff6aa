#include "engine/real/host/process_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace areal::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kKillWait = 1_s;        // spec/transfer.md 6.1
constexpr std::int64_t kLookAgainMs = 10;  // For members that no pidfd tells of.

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

bool has_ended(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

}  // namespace

void ProcessTree::add(const ProcessIdentity& process) {
  const bool is_known = std::ranges::find(members_, process, &Member::identity) != members_.end();
  if (is_known || process.pid == ::getpid()) return;
  Descriptor pidfd(open_pidfd(process.pid));
  // Looked at after it was opened: if the process is the right one now, so is the pidfd.
  if (is_alive(process)) members_.push_back({process, std::move(pidfd)});
}

void ProcessTree::add_descendants(const ProcessIdentity& root) {
  for (const ProcessIdentity& process : descendants_of(root)) add(process);
}

void ProcessTree::add_descendants() {
  std::vector<ProcessIdentity> known;
  known.reserve(members_.size());
  for (const Member& member : members_) known.push_back(member.identity);
  for (const ProcessIdentity& process : known) add_descendants(process);
}

void ProcessTree::signal(int number) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[number == SIGKILL ? i : members_.size() - 1 - i];
    if (member.pidfd.is_open()) {
      ::syscall(SYS_pidfd_send_signal, member.pidfd.number(), number, nullptr, 0);
    } else if (is_alive(member.identity)) {
      ::kill(member.identity.pid, number);
    }
  }
}

const std::vector<pid_t>& ProcessTree::survivors() {
  std::erase_if(members_, [](const Member& member) {
    return member.pidfd.is_open() ? has_ended(member.pidfd.number()) : !is_alive(member.identity);
  });
  survivors_.clear();
  for (const Member& member : members_) survivors_.push_back(member.identity.pid);
  return survivors_;
}

void ProcessTree::wait(Duration timeout) {
  const Clock::time_point deadline = Clock::now() + std::chrono::nanoseconds(timeout.ns);
  while (!survivors().empty()) {
    const std::int64_t left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return;
    // All are to die: it does not matter whom it is waited for first.
    pollfd ended{members_.front().pidfd.number(), POLLIN, 0};  // A negative number is left out by poll().
    ::poll(&ended, 1, static_cast<int>(std::min(left, kLookAgainMs)));
  }
}

Status kill_tree(const ProcessIdentity& root, Duration grace) {
  ProcessTree tree;
  tree.add(root);
  if (tree.survivors().empty()) return Unit{};
  tree.add_descendants();
  tree.signal(SIGTERM);
  tree.wait(grace);
  tree.add_descendants();
  tree.signal(SIGKILL);
  tree.wait(kKillWait);
  if (tree.survivors().empty()) return Unit{};
  return Error{Errc::kTimeout, fmt::format("still alive: {}", fmt::join(tree.survivors(), ", "))};
}

}  // namespace areal::host
