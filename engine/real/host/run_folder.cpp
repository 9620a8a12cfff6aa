#include "engine/real/host/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "engine/real/host/durable_file.h"

namespace areal::host {
namespace {

namespace fs = std::filesystem;

constexpr std::array kParts{"nodes", "store", "checkpoints", "recordings", "rendezvous", "logs"};
constexpr std::string_view kFirstLine = "areal-run 1";
constexpr std::size_t kOwnerLimit = 4096;

struct Owner {
  std::string run_id;
  ProcessIdentity starter{};
  std::string boot;
};

std::string owner_text(const Owner& owner) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", kFirstLine, owner.run_id, owner.starter.pid, owner.starter.start_ticks,
                     owner.boot);
}

template <class T>
bool parse_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Owner> read_owner(const fs::path& path) {
  const auto bytes = read_file(path / "owner", kOwnerLimit);
  if (!bytes) return std::nullopt;
  const auto& content = *bytes;
  if (!content) return std::nullopt;
  std::vector<std::string> lines{{}};
  for (const std::uint8_t byte : *content) {
    if (byte == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(byte);
    }
  }
  Owner owner;
  if (lines.size() != 6 || lines[0] != kFirstLine || !is_run_id(lines[1]) || !lines[5].empty()) return std::nullopt;
  if (!parse_number(lines[2], owner.starter.pid) || !parse_number(lines[3], owner.starter.start_ticks)) {
    return std::nullopt;
  }
  owner.run_id = lines[1];
  owner.boot = lines[4];
  return owner;
}

Result<std::string> random_hex(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  // So few bytes come at once or not at all.
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) return errno_error("random bytes");
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

Status make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0) return errno_error(path.string());
  return Unit{};
}

Status make_secret(const fs::path& path) {
  const auto text = random_hex(32);
  if (!text) return text.error();
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  const std::string line = *text + "\n";
  const bool is_written =
      file.is_open() && ::write(file.number(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!is_written) return errno_error(path.string());
  return Unit{};
}

// The owner goes last, so that a removal that broke off can be taken up again.
Status remove_all_of(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) entries.push_back(entry->path());
  for (const fs::path& inside : entries) {
    if (!error && inside.filename() != "owner") fs::remove_all(inside, error);
  }
  if (!error) fs::remove(path / "owner", error);
  if (!error) fs::remove(path, error);
  if (error) return Error{Errc::kIo, path.string() + ": " + error.message()};
  return Unit{};
}

}  // namespace

bool is_run_id(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return text.size() >= 8 && text.size() <= 64 && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<std::string> draw_run_id() { return random_hex(8); }

RunState run_state(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return RunState::kNone;
  if (status.type() != fs::file_type::directory) return RunState::kForeign;
  const auto owner = read_owner(path);
  // Its starter may have died before it wrote whose it is.
  if (!owner) return fs::is_empty(path, error) && !error ? RunState::kNone : RunState::kForeign;
  return owner->boot == boot_id() && is_alive(owner->starter) ? RunState::kLive : RunState::kDead;
}

Result<RunFolder> RunFolder::create(const fs::path& path, std::string_view run_id) {
  if (!is_run_id(run_id)) return Error{Errc::kInvalid, fmt::format("'{}' is no id of a run", run_id)};
  switch (run_state(path)) {
    case RunState::kNone:
      break;
    case RunState::kForeign:
      return Error{Errc::kInvalid, path.string() + ": is there and no folder of a run"};
    case RunState::kLive:
      return Error{Errc::kInvalid, path.string() + ": belongs to a run that lives"};
    case RunState::kDead:
      return Error{Errc::kInvalid, path.string() + ": belongs to a dead run; remove it first"};
  }
  ::rmdir(path.c_str());  // An empty one, which may be for others to read as well.
  AREAL_TRY(make_folder(path));
  const Owner owner{std::string(run_id), own_identity(), boot_id()};
  const std::string text = owner_text(owner);
  AREAL_TRY(replace_file(path / "owner", std::vector<std::uint8_t>(text.begin(), text.end())));
  for (const char* part : kParts) AREAL_TRY(make_folder(path / part));
  AREAL_TRY(make_secret(path / "secret"));
  return RunFolder(path, owner.run_id, owner.starter);
}

Result<RunFolder> RunFolder::open(const fs::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return errno_error(path.string());
  const bool is_private =
      S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!is_private) return Error{Errc::kInvalid, path.string() + ": is no folder for its user alone"};
  const auto owner = read_owner(path);
  if (!owner) return Error{Errc::kInvalid, path.string() + ": is no folder of a run"};
  return RunFolder(path, owner->run_id, owner->starter);
}

Status RunFolder::remove_dead(const fs::path& path) {
  switch (run_state(path)) {
    case RunState::kNone: {
      std::error_code error;
      fs::remove(path, error);
      if (error) return Error{Errc::kIo, path.string() + ": " + error.message()};
      return Unit{};
    }
    case RunState::kForeign:
      return Error{Errc::kInvalid, path.string() + ": is no folder of a run"};
    case RunState::kLive:
      return Error{Errc::kInvalid, path.string() + ": belongs to a run that lives"};
    case RunState::kDead:
      return remove_all_of(path);
  }
  return Unit{};
}

Status RunFolder::remove() const {
  if (starter_ != own_identity()) return Error{Errc::kInvalid, path_.string() + ": is not ours to remove"};
  const auto owner = read_owner(path_);
  if (!owner || owner->run_id != run_id_) return Error{Errc::kInvalid, path_.string() + ": belongs to another run"};
  return remove_all_of(path_);
}

}  // namespace areal::host
