// What a recorder was given is what a reader gives, and equal runs are equal files.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

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

std::unique_ptr<record::RunReader> read(const std::string& path) {
  auto reader = record::RunReader::open(path);
  EXPECT_TRUE(reader) << reader.error().detail;
  return reader ? std::move(*reader) : nullptr;
}

TEST(Recording, GivesBackEveryLine) {
  const ScratchFile file("lines.db");
  record_synthetic(file.path(), 200, {.block_events = 64});
  LineCollector told;
  SyntheticRun run(told);
  for (int i = 0; i < 200; ++i) {
    run.step();
    if (i == 100) run.update(1);
  }
  const auto reader = read(file.path());
  ASSERT_NE(reader, nullptr);
  EXPECT_GT(reader->blocks().size(), 5U);
  LineCollector heard;
  ASSERT_TRUE(reader->read_all(heard));
  EXPECT_EQ(told.lines, heard.lines);
}

TEST(Recording, DigestIsThatOfTheTrace) {
  const ScratchFile file("digest.db");
  const Digest128 recorded = record_synthetic(file.path(), 50);
  port::TraceDigest digest;
  SyntheticRun run(digest);
  for (int i = 0; i < 50; ++i) {
    run.step();
    if (i == 25) run.update(1);
  }
  EXPECT_EQ(to_hex(recorded), to_hex(digest.digest()));
  const auto reader = read(file.path());
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(to_hex(reader->digest()), to_hex(recorded));
}

TEST(Recording, KnowsItsRun) {
  const ScratchFile file("info.db");
  record_synthetic(file.path(), 10);
  const auto reader = read(file.path());
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->state(), record::RecordingState::kComplete);
  EXPECT_EQ(reader->verdict(), "violated");
  EXPECT_EQ(reader->value("count.updates"), "1");
  const record::RunInfo info = synthetic_info();
  EXPECT_EQ(reader->info().scenario_name, info.scenario_name);
  EXPECT_EQ(reader->info().scenario_text, info.scenario_text);
  EXPECT_EQ(reader->info().half, info.half);
  EXPECT_EQ(reader->info().program, info.program);
  EXPECT_EQ(reader->info().seed, info.seed);
  EXPECT_EQ(reader->info().overrides, info.overrides);
  ASSERT_EQ(reader->nodes().size(), 3U);
  EXPECT_EQ(reader->nodes()[1].name, "e0");
  EXPECT_EQ(reader->nodes()[1].slots, (std::vector<std::string>{"receiver", "server"}));
  EXPECT_EQ(reader->names().name(NodeId{3}, SlotId{1}), "e1/server");
  ASSERT_EQ(reader->streams().size(), 2U);
  EXPECT_EQ(reader->streams()[1], "order");
  ASSERT_EQ(reader->violations().size(), 1U);
  EXPECT_EQ(reader->violations()[0].invariant, "INV-1");
  EXPECT_EQ(reader->violations()[0].node, NodeId{2});
}

TEST(Recording, FindsEventsDecisionsAndSnapshots) {
  const ScratchFile file("find.db");
  record_synthetic(file.path(), 100, {.block_events = 16});
  const auto reader = read(file.path());
  ASSERT_NE(reader, nullptr);
  LineCollector all;
  ASSERT_TRUE(reader->read_all(all));
  for (const std::uint64_t seq : {std::uint64_t{1}, std::uint64_t{16}, std::uint64_t{17}, all.events.back().seq}) {
    const auto event = reader->event(seq);
    ASSERT_TRUE(event) << seq;
    EXPECT_EQ(event->record, all.events[seq - 1].record);
  }
  EXPECT_FALSE(reader->event(0));
  EXPECT_FALSE(reader->event(all.events.size() + 1));
  std::size_t count = 0;
  for (std::uint32_t stream = 0; stream < 2; ++stream) {
    const auto decisions = reader->decisions(stream);
    ASSERT_TRUE(decisions);
    for (std::size_t i = 0; i < decisions->size(); ++i) EXPECT_EQ((*decisions)[i].ordinal, i + 1);
    count += decisions->size();
  }
  EXPECT_EQ(count, all.decisions.size());
  ASSERT_EQ(reader->snapshots().size(), 1U);
  const auto words = reader->snapshot(reader->snapshots()[0]);
  ASSERT_TRUE(words);
  EXPECT_EQ(*words, (std::vector<std::uint64_t>{1, 2, ~std::uint64_t{0}}));
}

// An old recording prints with the names it was written with, whatever the program knows by now.
TEST(Recording, PrintsWithItsOwnKinds) {
  const ScratchFile file("kinds.db");
  record_synthetic(file.path(), 10);
  const auto reader = read(file.path());
  ASSERT_NE(reader, nullptr);
  LineCollector all;
  ASSERT_TRUE(reader->read_all(all));
  for (const port::TraceEvent& event : all.events) {
    EXPECT_EQ(reader->kinds().to_text(event.record), to_text(synthetic_kinds(), event.record));
    EXPECT_EQ(reader->kinds().to_text(event.body), to_text(synthetic_kinds(), event.body));
  }
  EXPECT_EQ(reader->kinds().to_text({.kind = 0x7777, .size = 2, .words = {4, 5}}), "kind30583{4 5}");
}

TEST(Recording, EqualRunsAreEqualFiles) {
  const ScratchFile a("equal_a.db");
  const ScratchFile b("equal_b.db");
  const ScratchFile other("equal_c.db");
  record_synthetic(a.path(), 3000);
  record_synthetic(b.path(), 3000);
  record_synthetic(other.path(), 3000, {}, 2);
  EXPECT_EQ(file_bytes(a.path()), file_bytes(b.path()));
  EXPECT_NE(file_bytes(a.path()), file_bytes(other.path()));
  for (const ScratchFile* file : {&a, &b}) {
    EXPECT_FALSE(std::filesystem::exists(file->path() + "-wal"));
    EXPECT_FALSE(std::filesystem::exists(file->path() + "-journal"));
  }
}

// When blocks are committed depends on the machine's speed, so it must not show.
TEST(Recording, CommitsDoNotShow) {
  const ScratchFile often("often.db");
  const ScratchFile rarely("rarely.db");
  record_synthetic(often.path(), 2000, {.block_events = 64, .blocks_per_commit = 1});
  record_synthetic(rarely.path(), 2000, {.block_events = 64, .blocks_per_commit = 1000});
  EXPECT_EQ(file_bytes(often.path()), file_bytes(rarely.path()));
}

TEST(Recording, ReplacesRecordingsOnly) {
  const ScratchFile file("replace.db");
  record_synthetic(file.path(), 10);
  record_synthetic(file.path(), 20);
  EXPECT_NE(read(file.path()), nullptr);
  const std::string letter =
      "Dear diary, this is no recording and it is longer than a hundred bytes, so that there is an id.";
  std::ofstream(file.path(), std::ios::trunc) << letter;
  const auto refused = record::Recorder::open(file.path(), synthetic_info(), synthetic_nodes(), synthetic_kinds());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalid);
  EXPECT_EQ(file_bytes(file.path()), letter);
}

// 10,000 events take a few milliseconds; a second would mean a commit or a row for every event.
TEST(Recording, TenThousandEventsAreFast) {
  const ScratchFile file("speed.db");
  const auto start = std::chrono::steady_clock::now();
  record_synthetic(file.path(), 3334);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_LT(std::filesystem::file_size(file.path()), 1'000'000U);
}

}  // namespace
}  // namespace areal::testing
