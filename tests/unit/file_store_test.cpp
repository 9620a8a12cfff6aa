// The store in files: compare-and-set between processes, and no death of a writer makes a value that nobody put.
#include "engine/real/host/file_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <new>

#include "engine/base/rng.h"
#include "tests/unit/temp_folder.h"

namespace areal::host {
namespace {

using port::Outcome;
using test::TempFolder;

constexpr std::uint64_t kKey = 7;

// Both halves say the same, so that a value of two halves would show.
Digest128 numbered(std::uint64_t number) { return number == 0 ? Digest128{} : Digest128{mix_words(number, 1), number}; }

// Seen by a test and the processes that it forks.
struct Progress {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint64_t> wins{0};
};

class Shared {
 public:
  Shared() : memory_(::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
    new (memory_) Progress();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(memory_, sizeof(Progress)); }
  Progress& operator*() { return *static_cast<Progress*>(memory_); }

 private:
  void* memory_;
};

TEST(FileStore, ComparesBeforeItSets) {
  const TempFolder folder;
  const auto store = FileStore::open(folder.path() / "store");
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->get(kKey).outcome, Outcome::kRefused);
  EXPECT_EQ(store->put_if(kKey, numbered(1), numbered(2)).outcome, Outcome::kMismatch);
  EXPECT_EQ(store->put_if(kKey, {}, numbered(1)).outcome, Outcome::kOk);
  const StoreAnswer mismatch = store->put_if(kKey, {}, numbered(2));
  EXPECT_EQ(mismatch.outcome, Outcome::kMismatch);
  EXPECT_EQ(mismatch.value, numbered(1));
  EXPECT_EQ(store->put_if(kKey, numbered(1), numbered(2)).value, numbered(2));
  EXPECT_EQ(store->get(kKey).value, numbered(2));
  EXPECT_EQ(store->get(kKey + 1).outcome, Outcome::kRefused);

  const auto again = FileStore::open(folder.path() / "store");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->get(kKey).value, numbered(2));
}

TEST(FileStore, ADamagedValueIsNeverReadAsAnother) {
  const TempFolder folder;
  const auto store = FileStore::open(folder.path());
  ASSERT_TRUE(store.has_value());
  ASSERT_EQ(store->put_if(kKey, {}, numbered(1)).outcome, Outcome::kOk);
  const std::filesystem::path file = folder.path() / "0000000000000007";
  const auto size = std::filesystem::file_size(file);
  for (std::uintmax_t at = 0; at < size; ++at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(stream.get());
    const auto write = [&](char value) {
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(value).flush();
    };
    write(static_cast<char>(byte ^ 0x10));
    EXPECT_EQ(store->get(kKey).outcome, Outcome::kFailed) << at;
    EXPECT_EQ(store->put_if(kKey, numbered(1), numbered(2)).outcome, Outcome::kFailed) << at;
    write(byte);
  }
  EXPECT_EQ(store->get(kKey).value, numbered(1));
  std::filesystem::copy_file(file, folder.path() / "0000000000000008");
  EXPECT_EQ(store->get(kKey + 1).outcome, Outcome::kFailed);  // The value of another key.
  std::filesystem::resize_file(file, size - 1);
  EXPECT_EQ(store->get(kKey).outcome, Outcome::kFailed);
}

// A writer that is stopped while it holds the store must not stop all others for good.
TEST(FileStore, WaitsForOthersOnlySoLong) {
  const TempFolder folder;
  const auto store = FileStore::open(folder.path(), 20_ms);
  ASSERT_TRUE(store.has_value());
  const Descriptor other(::open((folder.path() / "lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.number(), LOCK_EX), 0);
  EXPECT_EQ(store->put_if(kKey, {}, numbered(1)).outcome, Outcome::kTimedOut);
  EXPECT_EQ(store->get(kKey).outcome, Outcome::kTimedOut);
  ASSERT_EQ(::flock(other.number(), LOCK_UN), 0);
  EXPECT_EQ(store->get(kKey).outcome, Outcome::kRefused);
}

// If two puts of one expected value both won, two nodes would believe that they made the same version.
TEST(FileStore, OneOfSeveralProcessesWinsEachValue) {
  constexpr std::uint64_t kValues = 60;
  constexpr int kProcesses = 3;
  const TempFolder folder;
  Shared shared;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto store = FileStore::open(folder.path());
      for (std::uint64_t number = 1; store && number <= kValues; ++number) {
        if (store->put_if(kKey, numbered(number - 1), numbered(number)).outcome == Outcome::kOk) ++(*shared).wins;
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  EXPECT_EQ((*shared).wins, kValues);
  const auto store = FileStore::open(folder.path());
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->get(kKey).value, numbered(kValues));
}

// Puts one number after the other until it is killed.
[[noreturn]] void put_for_ever(const std::filesystem::path& folder, Progress& progress) {
  const auto store = FileStore::open(folder);
  if (!store) ::_exit(1);
  std::uint64_t number = store->get(kKey).value.low;
  while (true) {
    progress.begun = number + 1;
    if (store->put_if(kKey, numbered(number), numbered(number + 1)).outcome != Outcome::kOk) ::_exit(1);
    progress.ended = ++number;
  }
}

TEST(FileStore, AKilledWriterLeavesWhatItPutLast) {
  constexpr int kKills = 200;
  const TempFolder folder;
  const auto store = FileStore::open(folder.path());
  ASSERT_TRUE(store.has_value());
  Shared shared;
  Rng rng(1);
  for (int i = 0; i < kKills; ++i) {
    const std::uint64_t before = (*shared).begun;
    const pid_t child = ::fork();
    if (child == 0) put_for_ever(folder.path(), *shared);
    while ((*shared).begun == before && ::waitpid(child, nullptr, WNOHANG) == 0) ::usleep(20);
    ::usleep(static_cast<useconds_t>(rng.draw_below(1500)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with " << WEXITSTATUS(status);
    const StoreAnswer found = store->get(kKey);
    const Progress& progress = *shared;
    const std::uint64_t number = found.value.low;
    ASSERT_EQ(found.outcome, number == 0 ? Outcome::kRefused : Outcome::kOk) << found.reason;
    ASSERT_EQ(found.value, numbered(number));
    ASSERT_GE(number, progress.ended);
    ASSERT_LE(number, progress.begun);
  }
  EXPECT_GT((*shared).ended, static_cast<std::uint64_t>(kKills));
  // The value, the lock, and at most one file that was being written.
  const auto files = std::filesystem::directory_iterator(folder.path());
  EXPECT_LE(std::distance(begin(files), end(files)), 3);
}

}  // namespace
}  // namespace areal::host
