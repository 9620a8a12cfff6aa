// A recording does not show who wrote it: a thread behind a queue of any depth, or the loop itself.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "replay/record/run_reader.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

std::string content_digest(const std::string& path) {
  const auto reader = record::RunReader::open(path);
  EXPECT_TRUE(reader) << reader.error().detail;
  return reader ? (*reader)->value("content_digest") : std::string();
}

record::RecorderOptions options(record::Writing writing, std::uint64_t batches_behind = 256) {
  return {.block_events = 256, .blocks_per_commit = 3, .writing = writing, .batches_behind = batches_behind};
}

TEST(BackgroundRecording, IsTheSameFileAsAnInlineOne) {
  const ScratchFile inline_file("inline.db");
  const Digest128 digest = record_synthetic(inline_file.path(), 5000, options(record::Writing::kInline));
  const std::string content = content_digest(inline_file.path());
  EXPECT_EQ(content.size(), 32U);
  for (const std::uint64_t behind : {1U, 2U, 256U}) {
    const ScratchFile file("background.db");
    EXPECT_EQ(record_synthetic(file.path(), 5000, options(record::Writing::kBackground, behind)), digest);
    EXPECT_EQ(content_digest(file.path()), content) << behind;
    EXPECT_EQ(file_bytes(file.path()), file_bytes(inline_file.path())) << behind;
  }
}

// A queue of one batch is full most of the time: the loop waits, and every line arrives.
TEST(BackgroundRecording, FullQueueWaitsAndDropsNothing) {
  const ScratchFile file("full_queue.db");
  LineCollector told;
  SyntheticRun expected(told);
  {
    const auto recorder = open_recorder(file.path(), options(record::Writing::kBackground, 1));
    SyntheticRun run(*recorder);
    for (int i = 0; i < 20'000; ++i) run.step(), expected.step();
    ASSERT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  }
  const auto reader = record::RunReader::open(file.path());
  ASSERT_TRUE(reader) << reader.error().detail;
  LineCollector heard;
  ASSERT_TRUE((*reader)->read_all(heard));
  EXPECT_EQ(told.lines.size(), heard.lines.size());
  EXPECT_EQ(told.lines, heard.lines);
}

// Whatever asks for a result hears of everything that was said before.
TEST(BackgroundRecording, AnswersAreUpToDate) {
  const ScratchFile file("answers.db");
  const auto recorder = open_recorder(file.path(), options(record::Writing::kBackground));
  port::TraceDigest digest;
  SyntheticRun run(*recorder);
  SyntheticRun twin(digest);
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 40; ++k) run.step(), twin.step();
    EXPECT_EQ(recorder->digest(), digest.digest());
    if (i % 7 == 0) recorder->flush_soon();
    if (i % 11 == 0) recorder->flush();
    EXPECT_FALSE(recorder->failed());
  }
}

// Names of streams and records of every size pass the queue, also where a batch ends between them.
TEST(BackgroundRecording, EveryKindOfLinePassesTheQueue) {
  const ScratchFile file("kinds_of_lines.db");
  LineCollector told;
  const auto recorder = open_recorder(file.path(), options(record::Writing::kBackground, 2));
  for (std::uint32_t i = 0; i < 3000; ++i) {
    port::TraceEvent event;
    event.seq = i + 1;
    event.node = {1};
    event.what = port::TraceWhat::kInput;
    event.record = {.kind = 0x0F02, .size = static_cast<std::uint8_t>(i % (kMaxRecordWords + 1)), .words = {}};
    event.body = {.kind = 0x0F03, .size = static_cast<std::uint8_t>(i % 3), .words = {i, ~i}};
    for (std::size_t k = 0; k < event.record.size; ++k) event.record.words[k] = mix_words(i, k);
    for (port::TraceSink* sink :
         {static_cast<port::TraceSink*>(recorder.get()), static_cast<port::TraceSink*>(&told)}) {
      sink->on_stream(i, "stream." + std::to_string(i));
      sink->on_event(event);
      sink->on_state({1}, {i % 2}, {i, ~std::uint64_t{i}});
      sink->on_decision({i, 1, i + 2, i + 1});
    }
  }
  ASSERT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  const auto reader = record::RunReader::open(file.path());
  ASSERT_TRUE(reader) << reader.error().detail;
  LineCollector heard;
  ASSERT_TRUE((*reader)->read_all(heard));
  EXPECT_EQ(told.lines, heard.lines);
  EXPECT_EQ((*reader)->streams()[2999], "stream.2999");
}

}  // namespace
}  // namespace areal::testing
