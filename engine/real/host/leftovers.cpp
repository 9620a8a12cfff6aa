#include "engine/real/host/leftovers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "engine/real/host/durable_file.h"
#include "engine/real/host/port_lease.h"
#include "engine/real/host/run_folder.h"

namespace areal::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTextLimit = std::size_t{64} << 20;  // /proc/net/unix grows with the machine.
constexpr int kLooks = 5;                                  // Before a lease counts as nobody's.
constexpr unsigned kBetweenLooksUs = 20'000;
constexpr std::string_view kLeasePrefix = "@areal-port-reservation-v1-";

std::string read_text(const fs::path& path) {
  const auto bytes = read_file(path, kTextLimit);
  if (!bytes) return {};
  const auto& content = *bytes;
  return content ? std::string(content->begin(), content->end()) : std::string();
}

// Parts that end with `end`.
std::vector<std::string_view> split(std::string_view text, char end) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find(end), text.size());
    parts.push_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return parts;
}

fs::path proc_of(pid_t pid) { return fmt::format("/proc/{}", pid); }

bool carries(pid_t pid, std::string_view run_id) {
  const std::string environment = read_text(proc_of(pid) / "environ");
  const std::string entry = fmt::format("{}={}", kRunIdVariable, run_id);
  if (std::ranges::count(split(environment, '\0'), entry) > 0) return true;
  return read_text(proc_of(pid) / "cmdline").find(run_id) != std::string::npos;
}

std::vector<pid_t> self_and_above() {
  std::vector<pid_t> pids;
  for (pid_t pid = ::getpid(); pid != 0 && std::ranges::find(pids, pid) == pids.end();) {
    pids.push_back(pid);
    const auto info = read_process(pid);
    pid = info ? info->parent : 0;
  }
  return pids;
}

struct LeaseSocket {
  std::uint16_t port = 0;
  std::string link;  // As a descriptor shows it.
  std::vector<pid_t> holders;
};

// A line ends with the socket's inode and name.
std::vector<LeaseSocket> lease_sockets() {
  std::vector<LeaseSocket> sockets;
  const std::string text = read_text("/proc/net/unix");
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t at = line.find(kLeasePrefix);
    if (at == std::string_view::npos || at == 0) continue;
    const std::string_view digits = line.substr(at + kLeasePrefix.size());
    LeaseSocket socket;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), socket.port);
    if (error != std::errc() || end != digits.data() + digits.size()) continue;
    const std::string_view before = line.substr(0, at - 1);
    socket.link = fmt::format("socket:[{}]", before.substr(before.rfind(' ') + 1));
    sockets.push_back(std::move(socket));
  }
  std::ranges::stable_sort(sockets, {}, &LeaseSocket::port);
  return sockets;
}

// Whether all descriptors of the process could be looked at.
bool add_holder(pid_t pid, std::vector<LeaseSocket>& sockets) {
  std::error_code error;
  fs::directory_iterator entry(proc_of(pid) / "fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;  // Closed since.
    const std::string link = fs::read_symlink(entry->path(), gone).string();
    for (LeaseSocket& socket : sockets) {
      if (socket.link == link) socket.holders.push_back(pid);
    }
  }
  const auto info = read_process(pid);
  return !error || !info || info->state == 'Z';
}

struct LeaseView {
  std::vector<LeaseSocket> sockets;
  bool is_all_seen = true;  // All descriptors of all processes were.
};

LeaseView look_at_leases() {
  LeaseView view;
  view.sockets = lease_sockets();
  if (view.sockets.empty()) return view;
  for (const ProcessInfo& info : all_processes()) view.is_all_seen &= add_holder(info.identity.pid, view.sockets);
  return view;
}

// A process that ends between two looks at /proc leaves a socket that is nobody's for a moment, and so does a lease
// that is being handed over. What is nobody's at every look is left.
LeaseView look_again_at_leases() {
  LeaseView view = look_at_leases();
  const auto has_orphan = [&] {
    return std::ranges::any_of(view.sockets, [](const LeaseSocket& socket) { return socket.holders.empty(); });
  };
  for (int looks = 1; looks < kLooks && view.is_all_seen && has_orphan(); ++looks) {
    ::usleep(kBetweenLooksUs);
    view = look_at_leases();
  }
  return view;
}

void list_leases(const std::vector<ProcessInfo>& of_run, std::vector<std::string>& words) {
  const LeaseView view = look_again_at_leases();
  for (const LeaseSocket& socket : view.sockets) {
    const auto holder = std::ranges::find_if(of_run, [&](const ProcessInfo& info) {
      return std::ranges::find(socket.holders, info.identity.pid) != socket.holders.end();
    });
    if (holder != of_run.end()) {
      words.push_back(fmt::format("port {} is leased by process {}", socket.port, holder->identity.pid));
    } else if (socket.holders.empty() && view.is_all_seen) {
      words.push_back(fmt::format("port {} is leased by nobody that lives", socket.port));
    }
  }
}

void list_shared_memory(const LeftoverQuery& query, std::vector<std::string>& words) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(query.shared_memory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find(query.run_id) != std::string::npos) names.push_back(name);
  }
  std::ranges::stable_sort(names);
  for (const std::string& name : names)
    words.push_back(fmt::format("shared memory {}", (query.shared_memory / name).string()));
}

}  // namespace

std::vector<ProcessInfo> processes_of(std::string_view run_id) {
  const auto left_out = self_and_above();
  auto processes = all_processes();
  std::erase_if(processes, [&](const ProcessInfo& info) {
    const pid_t pid = info.identity.pid;
    return info.state == 'Z' || std::ranges::find(left_out, pid) != left_out.end() || !carries(pid, run_id);
  });
  return processes;
}

Result<std::vector<std::string>> find_leftovers(const LeftoverQuery& query) {
  if (!is_run_id(query.run_id)) return Error{Errc::kInvalid, fmt::format("'{}' is no id of a run", query.run_id)};
  std::vector<std::string> words;
  const auto processes = processes_of(query.run_id);
  for (const ProcessInfo& info : processes) {
    std::string command = read_text(proc_of(info.identity.pid) / "cmdline");
    std::ranges::replace(command, '\0', ' ');
    words.push_back(fmt::format("process {} (parent {}, state {}): {}", info.identity.pid, info.parent, info.state,
                                command.substr(0, 120)));
  }
  list_leases(processes, words);
  list_shared_memory(query, words);
  std::error_code error;
  if (!query.run_folder.empty() && fs::exists(fs::symlink_status(query.run_folder, error))) {
    words.push_back(fmt::format("folder {}", query.run_folder.string()));
  }
  return words;
}

}  // namespace areal::host
