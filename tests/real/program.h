// Runs areal-sim as a user does, in a folder of its own, and looks for what it leaves behind.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/real/host/leftovers.h"
#include "engine/real/host/os_process.h"
#include "engine/real/host/run_folder.h"
#include "tests/unit/temp_folder.h"

namespace areal::test {

using SteadyClock = std::chrono::steady_clock;

inline std::string source_file(const std::string& name) {
  return (std::filesystem::path(AREAL_SOURCE_DIR) / name).string();
}

// One call of the program; its output is read as it comes.
class Program {
 public:
  Program(const std::filesystem::path& folder, std::vector<std::string> arguments) {
    host::ProcessRecipe recipe;
    recipe.argv = std::move(arguments);
    recipe.argv.insert(recipe.argv.begin(), AREAL_PROGRAM);
    recipe.environment = {{"TMPDIR", folder.string()}};
    recipe.working_folder = folder;
    recipe.output = host::ProcessOutput::kPipe;
    auto process = host::OsProcess::start(recipe);
    if (process) process_ = std::move(*process);
    EXPECT_NE(process_, nullptr);
  }

  // Until `word` was printed; false if the program ended or `limit` passed before.
  bool wait_for(const std::string& word, std::chrono::seconds limit = std::chrono::seconds(60)) {
    const auto until = SteadyClock::now() + limit;
    while (SteadyClock::now() < until) {
      const bool ended = process_->poll().has_value();
      read();
      if (output_.find(word) != std::string::npos) return true;
      if (ended) return false;
    }
    return false;
  }
  // The exit status, or a signal below zero; nothing if it still runs.
  std::optional<std::int32_t> wait(std::chrono::seconds limit = std::chrono::seconds(120)) {
    const auto until = SteadyClock::now() + limit;
    while (SteadyClock::now() < until) {
      const auto exit = process_->poll();
      read();
      if (exit) return exit->word();
    }
    return std::nullopt;
  }

  // From here on nobody reads what it prints.
  void stop_reading() {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup3(nothing, process_->output_fd(), O_CLOEXEC);  // Closes the pipe's end.
    ::close(nothing);
  }
  void signal(int number) { ::kill(process_->identity().pid, number); }
  [[nodiscard]] const std::string& output() const { return output_; }

 private:
  void read() {
    pollfd ready{process_->output_fd(), POLLIN, 0};
    ::poll(&ready, 1, 20);
    char buffer[4096];
    while (true) {
      const ssize_t got = ::read(process_->output_fd(), buffer, sizeof buffer);
      if (got <= 0) return;
      output_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  std::unique_ptr<host::OsProcess> process_;
  std::string output_;
};

// The folder of the only run below `folder`, if there is one.
inline std::optional<host::RunFolder> run_folder_in(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("areal-run-")) continue;
    if (auto run = host::RunFolder::open(entry.path())) return std::move(*run);
  }
  return std::nullopt;
}

// What is left of a run but its folder, at most `limit` after now; empty is what should be.
inline std::vector<std::string> left_of(const std::string& run_id, std::chrono::seconds limit) {
  const auto until = SteadyClock::now() + limit;
  std::vector<std::string> left;
  do {
    auto found = host::find_leftovers({run_id});
    if (!found) return {found.error().detail};
    left = std::move(*found);
    if (left.empty()) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (SteadyClock::now() < until);
  return left;
}

}  // namespace areal::test
