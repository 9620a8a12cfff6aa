// A child process that dies with its parent, tells its exit through a descriptor, and is stopped in bounded steps.
//
// The child has a process group of its own, /dev/null as input, default signals and no descriptor of its parent but
// what is given to it. The kernel kills it (SIGKILL) when the thread that started it ends; a child whose parent died
// before that was set up ends by itself. So nothing that is started this way, child or child's child, outlives the
// process at the top. Linux 5.11 or later.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/time.h"
#include "engine/config/environment.h"
#include "engine/real/host/process_identity.h"

namespace areal::host {

enum class ProcessOutput : std::uint8_t { kInherit, kFile, kPipe };

struct ProcessRecipe {
  std::vector<std::string> argv;                   // The program is looked up in PATH if it has no slash.
  std::vector<config::Variable> environment{};     // Laid over the environment of this process.
  std::filesystem::path working_folder{};          // Empty: that of this process.
  ProcessOutput output = ProcessOutput::kInherit;  // Where both output and errors go.
  std::filesystem::path output_file{};             // kFile: appended to.
};

struct Exit {
  std::int32_t code = 0;    // Of a process that ended by itself.
  std::int32_t signal = 0;  // What ended it otherwise; then code is 0.
  std::string reason;       // Not empty: the program was never run, and why.
  // One number: code, or the signal below zero.
  [[nodiscard]] std::int32_t word() const { return signal != 0 ? -signal : code; }
};

// No call blocks but the destructor. Not thread-safe; to be used by the thread that started the child, which must live
// as long as the child should.
class OsProcess {
 public:
  // kInvalid: no argv. kIo: no descriptors or processes are left, or the output file cannot be opened. That the program
  // cannot be run shows as its exit, with a reason.
  static Result<std::unique_ptr<OsProcess>> start(const ProcessRecipe& recipe);
  // Kills what still runs and waits for it, a second at most.
  ~OsProcess();
  OsProcess(const OsProcess&) = delete;
  OsProcess& operator=(const OsProcess&) = delete;

  [[nodiscard]] const ProcessIdentity& identity() const;
  // Readable (level-triggered) when poll() has something to do: for an exit, or a step of a stop that is due.
  [[nodiscard]] int exit_fd() const;
  // Of kPipe: not blocking, ends when all who write to it are gone; -1 otherwise.
  [[nodiscard]] int output_fd() const;

  // Reaps the child, goes on with a stop, and says the exit once the child and, after stop(), all its descendants are
  // dead. From then on it always says so. What is left of the child's process group is killed when the child ends.
  std::optional<Exit> poll();

  // SIGTERM to the child and its descendants, `grace` to end, SIGKILL to who lives then (spec/transfer.md 6.1). Asked
  // again it changes nothing, but starts anew where the last try left survivors.
  void stop(Duration grace);
  // Those that a stop could not kill within a second of SIGKILL, in uninterruptible waits; poll() still looks for their
  // end. Empty: no such trouble.
  [[nodiscard]] const std::vector<pid_t>& survivors() const;

 private:
  struct State;
  explicit OsProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace areal::host
