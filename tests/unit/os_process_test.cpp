// Child processes: their exit is noticed without waiting, they die with their parent, and a stop ends in time.
#include "engine/real/host/os_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "engine/base/rng.h"
#include "engine/real/host/leftovers.h"
#include "engine/real/host/port_lease.h"
#include "engine/real/host/process_tree.h"
#include "tests/unit/temp_folder.h"

namespace areal::host {
namespace {

using Clock = std::chrono::steady_clock;

ProcessRecipe shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .output = ProcessOutput::kPipe};
}

std::unique_ptr<OsProcess> start(const ProcessRecipe& recipe) {
  auto process = OsProcess::start(recipe);
  if (process) return std::move(process).value();
  ADD_FAILURE() << process.error().detail;
  return nullptr;
}

// What an event loop does: it sleeps on the descriptor alone.
std::optional<Exit> wait_exit(OsProcess& process, int limit_ms = 5000) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(limit_ms);
  while (true) {
    if (auto exit = process.poll()) return exit;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd ready{process.exit_fd(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(left));
  }
}

constexpr std::int32_t kStillRuns = 1000;

std::int32_t exit_word(OsProcess& process) {
  const auto exit = wait_exit(process);
  return exit ? exit->word() : kStillRuns;
}

// Until a whole line or the end came.
std::string read_line(OsProcess& process) {
  std::string text;
  while (text.empty() || text.back() != '\n') {
    pollfd ready{process.output_fd(), POLLIN, 0};
    char byte = 0;
    if (::poll(&ready, 1, 5000) != 1 || ::read(process.output_fd(), &byte, 1) != 1) return text;
    text += byte;
  }
  text.pop_back();
  return text;
}

bool dies_within(const ProcessIdentity& process, int limit_ms) {
  for (int i = 0; i < limit_ms && is_alive(process); ++i) ::usleep(1000);
  return !is_alive(process);
}

TEST(OsProcess, TellsHowAChildEnded) {
  EXPECT_EQ(exit_word(*start(shell("exit 7"))), 7);
  EXPECT_EQ(exit_word(*start(shell("kill -9 $$"))), -SIGKILL);
  const auto process = start(shell("exit 0"));
  EXPECT_EQ(exit_word(*process), 0);
  EXPECT_EQ(process->poll()->reason, "");  // Asked again it says the same.
  pollfd ready{process->exit_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);  // And the loop is not woken any more.
  EXPECT_FALSE(read_process(process->identity().pid).has_value());
}

TEST(OsProcess, AProgramThatCannotRunEndsWithAReason) {
  const auto missing = wait_exit(*start({.argv = {"/no/such/program"}}));
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->word(), 127);
  EXPECT_EQ(missing->reason, "program: No such file or directory");
  const auto homeless = wait_exit(*start({.argv = {"/bin/true"}, .working_folder = "/no/such/folder"}));
  ASSERT_TRUE(homeless.has_value());
  EXPECT_EQ(homeless->reason, "working folder: No such file or directory");
  EXPECT_EQ(OsProcess::start({}).error().code, Errc::kInvalid);
}

TEST(OsProcess, GivesWhatTheRecipeSays) {
  const test::TempFolder folder;
  ::setenv("AREAL_TEST_KEPT", "kept", 1);
  ::setenv("AREAL_TEST_CHANGED", "old", 1);
  ProcessRecipe recipe = shell("echo $AREAL_TEST_KEPT/$AREAL_TEST_CHANGED/${AREAL_TEST_EMPTY-unset}/$(pwd)/$(wc -c)");
  recipe.environment = {{"AREAL_TEST_CHANGED", "new"}, {"AREAL_TEST_EMPTY", ""}};
  recipe.working_folder = folder.path();
  const auto process = start(recipe);
  EXPECT_EQ(read_line(*process), "kept/new//" + folder.path().string() + "/0");
  EXPECT_EQ(exit_word(*process), 0);

  recipe = shell("echo out; echo err >&2");
  recipe.output = ProcessOutput::kFile;
  recipe.output_file = folder.path() / "log";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(exit_word(*start(recipe)), 0);
  std::ifstream log(recipe.output_file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}), "out\nerr\nout\nerr\n");
}

// A lease that a child inherits would outlive its guard, and an ignored signal would make a child that cannot be ended.
TEST(OsProcess, AChildInheritsNoDescriptorsAndNoIgnoredSignals) {
  PortLeases leases;
  ASSERT_TRUE(leases.lease(1, kFirstPort).has_value());
  const Descriptor leaky(::open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open): that is the point.
  const auto before = ::signal(SIGTERM, SIG_IGN);
  // Three, and the folder that ls reads.
  const auto process = start(shell("ls /proc/self/fd | wc -l; kill -TERM $$; echo ignored"));
  ::signal(SIGTERM, before);
  EXPECT_EQ(read_line(*process), "4");
  EXPECT_EQ(exit_word(*process), -SIGTERM);
}

TEST(OsProcess, AStopIsGentleFirst) {
  const auto process = start(shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do :; done"));
  ASSERT_EQ(read_line(*process), "ready");
  process->stop(10_s);
  EXPECT_EQ(exit_word(*process), 3);
  EXPECT_EQ(read_line(*process), "bye");
  EXPECT_EQ(read_line(*process), "");
}

TEST(OsProcess, WhoIgnoresTheStopIsKilledAfterItsGrace) {
  const auto process = start(shell("trap '' TERM; echo ready; sleep 60"));
  ASSERT_EQ(read_line(*process), "ready");
  const auto begun = Clock::now();
  process->stop(300_ms);
  EXPECT_LT(Clock::now() - begun, std::chrono::milliseconds(250));  // The caller does not wait.
  process->stop(0_ms);                                              // A second request does not cut the grace.
  const auto exit = wait_exit(*process);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->word(), -SIGKILL);
  EXPECT_GE(Clock::now() - begun, std::chrono::milliseconds(300));
  EXPECT_TRUE(process->survivors().empty());
}

// The child ends at once, its own child ignores the request: the stop is over when both are dead.
TEST(OsProcess, AStopEndsWithTheLastDescendant) {
  const auto process = start(
      shell("sh -c 'trap \"\" TERM; echo $$; exec sleep 60' & trap 'exit 0' TERM; echo ready; while :; do :; done"));
  std::string line = read_line(*process);
  const std::string other = read_line(*process);  // In either order.
  if (line == "ready") line = other;
  const pid_t grandchild = std::stoi(line);
  const auto info = read_process(grandchild);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->group, process->identity().pid);
  const auto begun = Clock::now();
  process->stop(300_ms);
  EXPECT_EQ(exit_word(*process), 0);
  EXPECT_FALSE(is_alive(info->identity));
  EXPECT_GE(Clock::now() - begun, std::chrono::milliseconds(300));
}

TEST(OsProcess, WhatAnExitLeavesOfItsGroupIsKilled) {
  const auto process = start(shell("sleep 60 & echo $!; exit 5"));
  const auto orphan = read_process(std::stoi(read_line(*process)));
  ASSERT_TRUE(orphan.has_value());
  EXPECT_EQ(exit_word(*process), 5);
  EXPECT_TRUE(dies_within(orphan->identity, 1000));
}

TEST(OsProcess, TheLastOwnerLeavesNoProcess) {
  auto process = start(shell("trap '' TERM; echo ready; sleep 60"));
  ASSERT_EQ(read_line(*process), "ready");
  const ProcessIdentity identity = process->identity();
  process.reset();
  EXPECT_FALSE(read_process(identity.pid).has_value());  // Not even as a zombie.
}

// Starts children until it is killed; each carries the run's id.
[[noreturn]] void start_for_ever(const std::string& run_id) {
  std::vector<std::unique_ptr<OsProcess>> children;
  while (children.size() < 10) {
    auto child = OsProcess::start({.argv = {"sleep", "60"}, .environment = {{"AREAL_RUN_ID", run_id}}});
    if (!child) ::_exit(1);
    children.push_back(std::move(child).value());
  }
  while (true) ::pause();
}

// At whatever moment the parent dies, also between the fork and what ties the child to it.
TEST(OsProcess, ChildrenDieWithTheirParent) {
  constexpr int kParents = 10;
  Rng rng(static_cast<std::uint64_t>(::getpid()));
  const std::string run_id = "parents-of-" + std::to_string(::getpid());
  const auto nobody_is_left = [&run_id] {
    for (int i = 0; i < 1000 && !processes_of(run_id).empty(); ++i) ::usleep(1000);
    return processes_of(run_id).empty();
  };
  for (int i = 0; i < kParents; ++i) {
    const pid_t parent = ::fork();
    if (parent == 0) start_for_ever(run_id);
    // If children were never seen, that they are gone would say nothing.
    while (i == 0 && processes_of(run_id).empty() && ::waitpid(parent, nullptr, WNOHANG) == 0) ::usleep(1000);
    ASSERT_TRUE(i > 0 || !processes_of(run_id).empty());
    ::usleep(static_cast<useconds_t>(500 + rng.draw_below(6000)));
    ::kill(parent, SIGKILL);
    ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
    ASSERT_TRUE(nobody_is_left());
  }
  ::usleep(50'000);  // Somebody who was amid its start would have its id by now.
  EXPECT_TRUE(nobody_is_left());
}

TEST(ProcessIdentity, AReusedPidIsAnotherProcess) {
  const auto process = start(shell("trap '' TERM; sleep 60 & echo ready; wait"));
  ASSERT_EQ(read_line(*process), "ready");
  const ProcessIdentity real = process->identity();
  const ProcessIdentity before{real.pid, real.start_ticks - 1};
  EXPECT_TRUE(is_alive(real));
  EXPECT_FALSE(is_alive(before));
  EXPECT_TRUE(descendants_of(before).empty());
  EXPECT_EQ(descendants_of(real).size(), 1U);
  // Nobody is signalled in place of who had the number before.
  EXPECT_TRUE(kill_tree(before, 0_ms).has_value());
  ::usleep(20'000);
  EXPECT_TRUE(is_alive(real));
  EXPECT_TRUE(kill_tree(real, 10_ms).has_value());
  EXPECT_FALSE(is_alive(real));
  EXPECT_TRUE(kill_tree(real, 10_ms).has_value());  // Again: nothing to do.
}

TEST(ProcessIdentity, AZombieIsDead) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto zombie = read_process(child);
  ASSERT_TRUE(zombie.has_value());
  EXPECT_EQ(zombie->state, 'Z');
  EXPECT_FALSE(is_alive(zombie->identity));
  EXPECT_TRUE(kill_tree(zombie->identity, 10_s).has_value());  // And nobody waits for it.
  ::waitpid(child, nullptr, 0);
}

TEST(ProcessIdentity, NamesOfProgramsMayHoldAnything) {
  const auto info = parse_process("12 (a) b (c) R) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 678 90 12\n");
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->identity, (ProcessIdentity{12, 678}));
  EXPECT_EQ(info->parent, 3);
  EXPECT_EQ(info->group, 4);
  EXPECT_EQ(info->state, 'S');
  for (const char* wrong : {"", "12", "12 (a", "12 (a) S 3 4", "x (a) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 678"}) {
    EXPECT_FALSE(parse_process(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(own_identity().pid, ::getpid());
}

}  // namespace
}  // namespace areal::host
