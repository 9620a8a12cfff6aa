// A run's folder is for its user alone, is known when its run is dead, and nothing of a run is overlooked afterwards.
#include "engine/real/host/run_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <thread>

#include "engine/real/host/leftovers.h"
#include "engine/real/host/os_process.h"
#include "engine/real/host/port_lease.h"
#include "tests/unit/temp_folder.h"

namespace areal::host {
namespace {

using test::TempFolder;

constexpr std::string_view kRun = "run-folder-test";

std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat info{};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

// As a starter that died leaves it.
void make_dead(const std::filesystem::path& path) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(RunFolder::create(path, kRun) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
}

TEST(RunFolder, IsForItsUserAlone) {
  const TempFolder folder;
  const mode_t before = ::umask(0);
  const auto run = RunFolder::create(folder.path() / "run", kRun);
  ::umask(before);
  ASSERT_TRUE(run.has_value()) << run.error().detail;
  EXPECT_EQ(mode_of(run->path()), 0700U);
  for (const auto& part :
       {run->nodes(), run->store(), run->checkpoints(), run->recordings(), run->rendezvous(), run->logs()}) {
    EXPECT_TRUE(std::filesystem::is_directory(part));
    EXPECT_EQ(mode_of(part), 0700U) << part;
  }
  EXPECT_EQ(mode_of(run->secret()), 0600U);
  const std::string secret = text_of(run->secret());
  EXPECT_EQ(secret.size(), 65U);  // 32 bytes as hex digits, and a line end.
  const auto other = RunFolder::create(folder.path() / "other", kRun);
  ASSERT_TRUE(other.has_value());
  EXPECT_NE(text_of(other->secret()), secret);

  const auto opened = RunFolder::open(run->path());
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->run_id(), kRun);
  EXPECT_EQ(opened->starter(), own_identity());
  ::chmod(run->path().c_str(), 0750);
  EXPECT_EQ(RunFolder::open(run->path()).error().code, Errc::kInvalid);
}

TEST(RunFolder, GoesWithAllThatIsInside) {
  const TempFolder folder;
  const auto run = RunFolder::create(folder.path() / "run", kRun);
  ASSERT_TRUE(run.has_value());
  std::ofstream(run->logs() / "node-1.log") << "text";
  std::ofstream(folder.path() / "outside") << "kept";
  std::filesystem::create_symlink(folder.path() / "outside", run->nodes() / "link");
  EXPECT_EQ(RunFolder::remove_dead(run->path()).error().code, Errc::kInvalid);  // It lives.
  // A child is not the starter.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run->remove() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(run->remove().has_value());
  EXPECT_FALSE(std::filesystem::exists(run->path()));
  EXPECT_EQ(text_of(folder.path() / "outside"), "kept");
}

TEST(RunFolder, ThatOfADeadRunIsKnown) {
  const TempFolder folder;
  const auto path = folder.path() / "run";
  EXPECT_EQ(run_state(path), RunState::kNone);
  make_dead(path);
  EXPECT_EQ(run_state(path), RunState::kDead);
  EXPECT_EQ(RunFolder::create(path, kRun).error().code, Errc::kInvalid);
  EXPECT_TRUE(RunFolder::remove_dead(path).has_value());
  EXPECT_EQ(run_state(path), RunState::kNone);
  EXPECT_TRUE(RunFolder::remove_dead(path).has_value());

  // The starter's number belongs to another process, or is of another start of the machine.
  const auto run = RunFolder::create(path, kRun);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run_state(path), RunState::kLive);
  const std::string good = text_of(path / "owner");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path / "owner") << text;
    return run_state(path);
  };
  const std::uint64_t start = run->starter().start_ticks;
  EXPECT_EQ(with("\n" + std::to_string(start) + "\n", "\n" + std::to_string(start + 1) + "\n"), RunState::kDead);
  EXPECT_EQ(with(boot_id(), std::string(36, '0')), RunState::kDead);
  EXPECT_EQ(with("areal-run 1", "areal-run 2"), RunState::kForeign);
  EXPECT_EQ(with("areal-run 1", "areal-run 1"), RunState::kLive);
}

// A mistyped path must not cost somebody their files.
TEST(RunFolder, WhatIsNoRunIsNeverTouched) {
  const TempFolder folder;
  std::ofstream(folder.path() / "thesis") << "text";
  EXPECT_EQ(run_state(folder.path()), RunState::kForeign);
  EXPECT_EQ(RunFolder::remove_dead(folder.path()).error().code, Errc::kInvalid);
  EXPECT_EQ(RunFolder::create(folder.path(), kRun).error().code, Errc::kInvalid);
  EXPECT_EQ(RunFolder::create(folder.path() / "thesis", kRun).error().code, Errc::kInvalid);
  EXPECT_EQ(RunFolder::open(folder.path()).error().code, Errc::kInvalid);
  make_dead(folder.path() / "run");
  std::filesystem::create_directory_symlink("run", folder.path() / "link");
  EXPECT_EQ(RunFolder::remove_dead(folder.path() / "link").error().code, Errc::kInvalid);
  EXPECT_EQ(text_of(folder.path() / "thesis"), "text");
}

// A removal that breaks off leaves a folder that can still be removed as the run's.
TEST(RunFolder, ABrokenOffRemovalIsTakenUpAgain) {
  const TempFolder folder;
  const auto path = folder.path() / "run";
  make_dead(path);
  std::filesystem::remove_all(path / "logs");
  std::filesystem::remove(path / "secret");
  EXPECT_EQ(run_state(path), RunState::kDead);
  EXPECT_TRUE(RunFolder::remove_dead(path).has_value());
  // And a start that broke off at once.
  std::filesystem::create_directory(path);
  EXPECT_EQ(run_state(path), RunState::kNone);
  EXPECT_TRUE(RunFolder::create(path, kRun).has_value());
  EXPECT_EQ(mode_of(path), 0700U);
}

TEST(RunFolder, IdsOfRunsAreDrawn) {
  const auto first = draw_run_id();
  const auto second = draw_run_id();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(is_run_id(*first));
  EXPECT_NE(*first, *second);
  for (const std::string& wrong :
       {std::string("short"), std::string(65, 'a'), std::string("../../../etc"), std::string()}) {
    EXPECT_FALSE(is_run_id(wrong)) << wrong;
  }
}

// What find_leftovers() says, without the numbers of processes.
std::vector<std::string> kinds_of(const LeftoverQuery& query) {
  const auto found = find_leftovers(query);
  if (!found) return {found.error().detail};
  std::vector<std::string> kinds;
  for (const std::string& words : *found) kinds.push_back(words.substr(0, words.find(' ')));
  return kinds;
}

TEST(Leftovers, EachKindIsFoundAndNoOtherRuns) {
  const TempFolder folder;
  const std::string run_id = "leftovers-" + std::to_string(::getpid());
  LeftoverQuery query{.run_id = run_id, .run_folder = folder.path() / "run", .shared_memory = folder.path() / "shm"};
  LeftoverQuery other = query;
  other.run_id = "another-" + std::to_string(::getpid());
  other.run_folder = folder.path() / "another";
  std::filesystem::create_directory(query.shared_memory);
  EXPECT_TRUE(kinds_of(query).empty());

  const auto by_environment =
      OsProcess::start({.argv = {"sleep", "60"}, .environment = {{std::string(kRunIdVariable), run_id}}});
  const auto by_argument = OsProcess::start({.argv = {"/bin/sh", "-c", "sleep 60; :", "node-of-" + run_id}});
  ASSERT_TRUE(by_environment && by_argument);
  std::ofstream(query.shared_memory / ("gloo-" + run_id + "-0")) << "x";
  const auto run = RunFolder::create(query.run_folder, run_id);
  ASSERT_TRUE(run.has_value());
  const std::vector<std::string> expected{"process", "process", "shared", "folder"};
  for (int i = 0; i < 1000 && kinds_of(query) != expected; ++i) ::usleep(1000);  // Until both run their programs.
  EXPECT_EQ(kinds_of(query), expected);
  EXPECT_TRUE(kinds_of(other).empty());

  for (const auto* process : {&*by_environment, &*by_argument}) {
    (*process)->stop({});
    for (int i = 0; i < 1000 && !(*process)->poll(); ++i) ::usleep(1000);
  }
  std::filesystem::remove_all(query.shared_memory);
  EXPECT_TRUE(run->remove().has_value());
  EXPECT_TRUE(kinds_of(query).empty());
  EXPECT_EQ(find_leftovers({.run_id = ""}).error().code, Errc::kInvalid);
}

// A copy of a lease's socket in a process that was forgotten would keep the port for ever.
TEST(Leftovers, ALeaseOfTheRunIsFound) {
  const std::string run_id = "leases-" + std::to_string(::getpid());
  PortLeases leases;
  const auto ports = leases.lease(1, static_cast<std::uint16_t>(kFirstPort + ::getpid() % 20000));
  ASSERT_TRUE(ports.has_value());
  const LeftoverQuery query{.run_id = run_id, .shared_memory = "/none"};
  EXPECT_TRUE(kinds_of(query).empty());  // Held by a process that is not of the run.
  // A process of the run that got the socket.
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string variable = std::string(kRunIdVariable) + "=" + run_id;
    std::array<char*, 2> environment{const_cast<char*>(variable.c_str()), nullptr};
    // Copies are inherited, unlike what they are copies of.
    for (int number = 3; number < 256; ++number) {
      struct stat info{};
      if (::fstat(number, &info) == 0 && S_ISSOCK(info.st_mode)) ::dup2(number, 300 + number);
    }
    ::execle("/bin/sleep", "sleep", "60", nullptr, environment.data());
    ::_exit(1);
  }
  const std::vector<std::string> expected{"process", "port"};
  for (int i = 0; i < 1000 && kinds_of(query) != expected; ++i) ::usleep(1000);
  EXPECT_EQ(kinds_of(query), expected);
  const auto found = find_leftovers(query);
  ASSERT_TRUE(found && found->size() == 2);
  EXPECT_EQ((*found)[1], "port " + std::to_string(ports->front()) + " is leased by process " + std::to_string(child));
  leases.release(ports->front());
  EXPECT_EQ(kinds_of(query), expected);  // The copy keeps it.
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(kinds_of(query).empty());
}

// Puts a copy of every socket of this process that leases a port into a message to itself, which holds them until both
// ends are closed.
std::array<int, 2> hold_in_a_message() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  for (int number = 3; number < 256; ++number) {
    sockaddr_un name{};
    socklen_t size = sizeof name;
    if (::getsockname(number, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.sun_family != AF_UNIX) continue;
    if (std::string_view(name.sun_path + 1, sizeof name.sun_path - 1).find("areal-port") != 0) continue;
    char byte = 'x';
    iovec data{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &number, sizeof number);
    EXPECT_EQ(::sendmsg(ends[0], &message, 0), 1);
  }
  return ends;
}

// Others' leases may come and go meanwhile; only this one counts.
bool says_nobody(const LeftoverQuery& query, std::uint16_t port) {
  const auto found = find_leftovers(query);
  return found && std::ranges::count(*found, fmt::format("port {} is leased by nobody that lives", port)) > 0;
}

TEST(Leftovers, ALeaseOfNobodyIsFoundOnceItStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root sees whether nobody holds a lease";
  PortLeases leases;
  const LeftoverQuery query{.run_id = "nobody-" + std::to_string(::getpid()), .shared_memory = "/none"};
  for (const bool stays : {true, false}) {
    const auto ports = leases.lease(1, static_cast<std::uint16_t>(kFirstPort + ::getpid() % 20000));
    ASSERT_TRUE(ports.has_value());
    const std::array<int, 2> ends = hold_in_a_message();
    leases.release(ports->front());
    const auto let_go = [&ends] { ::close(ends[0]), ::close(ends[1]); };
    if (stays) {
      EXPECT_TRUE(says_nobody(query, ports->front()));
      let_go();
    } else {
      std::thread soon([&] { ::usleep(5000), let_go(); });
      EXPECT_FALSE(says_nobody(query, ports->front()));
      soon.join();
    }
    EXPECT_FALSE(says_nobody(query, ports->front()));
  }
}

}  // namespace
}  // namespace areal::host
