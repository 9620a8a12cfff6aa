// The folder of one run: its layout, its secret, whose it is, and how it goes.
//
// nodes/, store/, checkpoints/, recordings/, rendezvous/ and logs/ are for the parts of a run; "secret" holds 32 random
// bytes as hex digits; "owner" names the run and the process that started it. All of it is for its user alone.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/real/host/process_identity.h"

namespace areal::host {

// 8 to 64 letters, digits, '-' and '_'.
bool is_run_id(std::string_view text);
// 16 hex digits, never the same twice. kIo: the system gives no random bytes.
Result<std::string> draw_run_id();

enum class RunState : std::uint8_t {
  kNone,     // Nothing is there, or a folder without anything inside.
  kForeign,  // Something that is no folder of a run; it is never touched.
  kLive,     // Its starter lives.
  kDead,     // Its starter is dead, or the machine was started anew since.
};

// What `path` is. Thread-safe.
RunState run_state(const std::filesystem::path& path);

// A value: where things are. Thread-safe.
class RunFolder {
 public:
  // For a new run of the calling process. kInvalid: `run_id` is none, or something is at `path` already. kIo.
  static Result<RunFolder> create(const std::filesystem::path& path, std::string_view run_id);
  // That of a run that is there. kInvalid: it is no run's folder, or others than its user may use it. kIo.
  static Result<RunFolder> open(const std::filesystem::path& path);
  // Removes that of a dead run. kInvalid: it is another's or its run lives. Nothing there is a success.
  static Status remove_dead(const std::filesystem::path& path);

  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] const ProcessIdentity& starter() const { return starter_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path nodes() const { return path_ / "nodes"; }
  [[nodiscard]] std::filesystem::path store() const { return path_ / "store"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  [[nodiscard]] std::filesystem::path recordings() const { return path_ / "recordings"; }
  [[nodiscard]] std::filesystem::path rendezvous() const { return path_ / "rendezvous"; }
  [[nodiscard]] std::filesystem::path logs() const { return path_ / "logs"; }
  [[nodiscard]] std::filesystem::path secret() const { return path_ / "secret"; }

  // With all that is inside. kInvalid: the calling process is not its starter. Who dies meanwhile leaves a folder that
  // is still known as this run's.
  [[nodiscard]] Status remove() const;

 private:
  RunFolder(std::filesystem::path path, std::string run_id, const ProcessIdentity& starter)
      : path_(std::move(path)), run_id_(std::move(run_id)), starter_(starter) {}

  std::filesystem::path path_;
  std::string run_id_;
  ProcessIdentity starter_;
};

}  // namespace areal::host
