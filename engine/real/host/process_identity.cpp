#include "engine/real/host/process_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "engine/base/check.h"
#include "engine/real/host/durable_file.h"

namespace areal::host {
namespace {

constexpr std::size_t kStatLimit = 1 << 16;

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string read_text(const std::string& path) {
  const auto bytes = read_file(path, kStatLimit);
  if (!bytes) return {};
  const auto& content = *bytes;
  return content ? std::string(content->begin(), content->end()) : std::string();
}

}  // namespace

std::optional<ProcessInfo> parse_process(std::string_view line) {
  const std::size_t open = line.find(" (");
  const std::size_t close = line.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  // State is field 3, so that field n is word n - 3.
  const auto words = split(line.substr(close + 2));
  ProcessInfo info;
  if (words.size() < 20 || words[0].size() != 1) return std::nullopt;
  info.state = words[0][0];
  const bool is_read = parse_number(line.substr(0, open), info.identity.pid) && parse_number(words[1], info.parent) &&
                       parse_number(words[2], info.group) && parse_number(words[19], info.identity.start_ticks);
  if (!is_read) return std::nullopt;
  return info;
}

std::optional<ProcessInfo> read_process(pid_t pid) {
  return parse_process(read_text(fmt::format("/proc/{}/stat", pid)));
}

ProcessIdentity own_identity() {
  const auto info = read_process(::getpid());
  AREAL_CHECK(info.has_value());
  return info->identity;
}

bool is_alive(const ProcessIdentity& process) {
  const auto info = read_process(process.pid);
  return info && info->identity == process && info->state != 'Z' && info->state != 'X';
}

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> processes;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    pid_t pid = 0;
    if (!parse_number(entry->path().filename().string(), pid)) continue;
    if (const auto info = read_process(pid)) processes.push_back(*info);
  }
  std::ranges::stable_sort(processes, {}, [](const ProcessInfo& info) { return info.identity.pid; });
  return processes;
}

std::vector<ProcessIdentity> descendants_of(const ProcessIdentity& root) {
  const auto processes = all_processes();
  if (std::ranges::find(processes, root, &ProcessInfo::identity) == processes.end()) return {};
  std::vector<ProcessIdentity> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ProcessInfo& info : processes) {
      const bool is_known = std::ranges::find(found, info.identity) != found.end();
      if (info.parent == found[i].pid && info.state != 'Z' && !is_known) found.push_back(info.identity);
    }
  }
  found.erase(found.begin());
  return found;
}

std::string boot_id() {
  std::string text = read_text("/proc/sys/kernel/random/boot_id");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace areal::host
