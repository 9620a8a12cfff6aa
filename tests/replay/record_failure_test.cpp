// A killed run, a run without end and a full disk leave a recording that can be read up to its last commit.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "replay/record/run_reader.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

constexpr std::array<record::Writing, 2> kWritings{record::Writing::kInline, record::Writing::kBackground};

// The lines of the run of seed 1, so that a truncated recording can be compared with what was said.
std::vector<std::vector<std::uint64_t>> first_lines(std::size_t count, int steps) {
  LineCollector told;
  SyntheticRun run(told);
  for (int i = 0; i < steps; ++i) run.step();
  told.lines.resize(std::min(count, told.lines.size()));
  return told.lines;
}

void expect_truncated(const std::string& path, std::size_t least_events, int steps) {
  const auto reader = record::RunReader::open(path);
  ASSERT_TRUE(reader) << reader.error().detail;
  EXPECT_EQ((*reader)->state(), record::RecordingState::kTruncated);
  EXPECT_EQ((*reader)->verdict(), "");
  EXPECT_EQ((*reader)->info().scenario_name, "made_up");
  LineCollector heard;
  ASSERT_TRUE((*reader)->read_all(heard));
  EXPECT_GE(heard.events.size(), least_events);
  EXPECT_EQ(heard.lines, first_lines(heard.lines.size(), steps));
}

// Runs `body` in a process of its own, which must end with code 0.
template <class Body>
void in_child(Body&& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(RecordingFailure, KilledRunIsReadableUpToItsLastCommit) {
  for (const record::Writing writing : kWritings) {
    for (const int steps : {0, 1, 100, 2000}) {
      const ScratchFile file("killed.db");
      in_child([&] {
        auto* recorder =
            open_recorder(file.path(), {.block_events = 64, .blocks_per_commit = 2, .writing = writing}).release();
        SyntheticRun run(*recorder);
        for (int i = 0; i < steps; ++i) run.step();
        recorder->settle();  // Which commits nothing.
      });
      const std::size_t events = static_cast<std::size_t>(steps) * 3;
      expect_truncated(file.path(), events > 192 ? events - 192 : 0, steps);
    }
  }
}

// Wherever the thread is when the process dies: what is on disk is the beginning of what was said.
TEST(RecordingFailure, RunKilledWhileItsThreadWritesIsReadable) {
  for (const int steps : {1, 500, 1000, 2000, 4000, 20'000}) {
    const ScratchFile file("killed_behind.db");
    in_child([&] {
      auto* recorder =
          open_recorder(file.path(),
                        {.block_events = 64, .blocks_per_commit = 2, .writing = record::Writing::kBackground})
              .release();
      SyntheticRun run(*recorder);
      for (int i = 0; i < steps; ++i) run.step();
    });
    expect_truncated(file.path(), 0, steps);
  }
}

TEST(RecordingFailure, ViolationIsOnDiskBeforeTheRunGoesOn) {
  for (const record::Writing writing : kWritings) {
    const ScratchFile file("violated.db");
    in_child([&] {
      auto* recorder = open_recorder(file.path(), {.writing = writing}).release();
      SyntheticRun run(*recorder);
      for (int i = 0; i < 10; ++i) run.step();
      recorder->add_violation({"INV-7", "liveness", run.seq(), NodeId{1}, "waits for ever"});
    });
    expect_truncated(file.path(), 30, 10);
    const auto reader = record::RunReader::open(file.path());
    ASSERT_TRUE(reader);
    ASSERT_EQ((*reader)->violations().size(), 1U);
    EXPECT_EQ((*reader)->violations()[0].message, "waits for ever");
  }
}

TEST(RecordingFailure, FlushIsOnDiskBeforeTheProcessDies) {
  for (const record::Writing writing : kWritings) {
    const ScratchFile file("flushed.db");
    in_child([&] {
      auto* recorder = open_recorder(file.path(), {.writing = writing}).release();
      SyntheticRun run(*recorder);
      for (int i = 0; i < 10; ++i) run.step();
      recorder->flush_soon();
      for (int i = 0; i < 10; ++i) run.step();
      recorder->flush();
    });
    expect_truncated(file.path(), 60, 20);
  }
}

TEST(RecordingFailure, RunWithoutEndKeepsAllItsLines) {
  for (const record::Writing writing : kWritings) {
    const ScratchFile file("unfinished.db");
    {
      const auto recorder = open_recorder(file.path(), {.writing = writing});
      SyntheticRun run(*recorder);
      for (int i = 0; i < 10; ++i) run.step();
    }
    expect_truncated(file.path(), 30, 10);
    EXPECT_FALSE(std::filesystem::exists(file.path() + "-wal"));
  }
}

// RLIMIT_FSIZE makes every write behind the limit fail, as a full disk does. Ends the process with what was wrong.
void record_beyond(std::uint64_t limit, const std::string& path, record::Writing writing) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{limit, limit};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto recorder = open_recorder(path, {.block_events = 256, .blocks_per_commit = 4, .writing = writing});
  SyntheticRun run(*recorder);
  for (int i = 0; i < 20'000; ++i) run.step();
  const bool noticed = recorder->failed();
  const Status status = recorder->finish({.verdict = "held", .counts = {}});
  port::TraceDigest digest;
  SyntheticRun again(digest);
  for (int i = 0; i < 20'000; ++i) again.step();
  if (!noticed) ::_exit(2);
  if (status) ::_exit(3);
  if (status.error().code != Errc::kIo) ::_exit(4);
  if (recorder->digest() != digest.digest()) ::_exit(5);
}

TEST(RecordingFailure, FullDiskIsReportedAndLeavesWhatWasCommitted) {
  for (const record::Writing writing : kWritings) {
    for (const std::uint64_t limit : {400'000U, 500'000U, 700'000U}) {
      const ScratchFile file("full.db");
      in_child([&] { record_beyond(limit, file.path(), writing); });
      expect_truncated(file.path(), 0, 20'000);
    }
  }
}

TEST(RecordingFailure, PlaceThatCannotBeWrittenIsRefused) {
  for (const char* path : {"/dev/full", "/proc/none/run.db", "/"}) {
    const auto refused = record::Recorder::open(path, synthetic_info(), synthetic_nodes(), synthetic_kinds());
    EXPECT_FALSE(refused) << path;
  }
}

}  // namespace
}  // namespace areal::testing
