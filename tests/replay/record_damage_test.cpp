// Every flipped byte of a recording is refused or reads back equal; cut, foreign and newer files are refused by name.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <fstream>

#include "replay/record/run_reader.h"
#include "replay/record/schema.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

// Everything a reader can be asked, as one digest; nothing if the recording is refused.
std::optional<Digest128> everything(const std::string& path) {
  const auto opened = record::RunReader::open(path);
  if (!opened) return std::nullopt;
  const record::RunReader& reader = **opened;
  LineCollector all;
  if (!reader.read_all(all)) return std::nullopt;
  Digest128 digest = reader.digest();
  const auto add = [&digest](std::string_view text) { digest = chain_digest(digest, hash_text(text)); };
  add(reader.state() == record::RecordingState::kComplete ? "complete" : "truncated");
  for (const char* key :
       {"scenario", "half", "program", "seed", "override.faults.cut", "verdict", "digest", "events"}) {
    add(reader.value(key));
  }
  add(reader.info().scenario_text);
  for (const record::NodeRow& node : reader.nodes()) {
    add(node.name + node.role + std::to_string(node.id.value) + std::to_string(node.host.value));
    for (const std::string& slot : node.slots) add(slot);
  }
  for (const record::ViolationRow& row : reader.violations()) {
    add(row.invariant + row.verdict + row.message + std::to_string(row.seq) + std::to_string(row.node.value));
  }
  for (const std::string& stream : reader.streams()) add(stream);
  const auto kinds = reader.kinds().bytes();
  digest = chain_digest(digest, hash_bytes(kinds));
  for (const record::SnapshotInfo& info : reader.snapshots()) {
    const auto words = reader.snapshot(info);
    if (!words) return std::nullopt;
    digest = chain_digest(digest, hash_words(*words));
  }
  for (const auto& line : all.lines) digest = chain_digest(digest, hash_words(line));
  return digest;
}

// Flips byte after byte of the file, `stride` apart, and compares what is read.
void expect_flips_found(const std::string& path, std::size_t first, std::size_t stride) {
  const auto sound = everything(path);
  ASSERT_TRUE(sound.has_value());
  const std::size_t size = std::filesystem::file_size(path);
  const int file = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  std::size_t refused = 0;
  for (std::size_t offset = first; offset < size; offset += stride) {
    std::uint8_t byte = 0;
    const auto at = static_cast<off_t>(offset);
    ASSERT_EQ(::pread(file, &byte, 1, at), 1);
    const std::array<std::uint8_t, 3> masks{0xFF, 0x01, 0x80};
    const std::uint8_t flipped = byte ^ masks[offset / stride % masks.size()];
    ASSERT_EQ(::pwrite(file, &flipped, 1, at), 1);
    const auto read = everything(path);
    EXPECT_TRUE(!read || *read == *sound) << "byte " << offset << " of " << size;
    if (!read) ++refused;
    ASSERT_EQ(::pwrite(file, &byte, 1, at), 1);
  }
  ::close(file);
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(everything(path), sound);
}

void record_small(const std::string& path) { record_synthetic(path, 4, {.block_events = 8, .page_size = 512}); }

TEST(RecordingDamage, SomeFlippedBytesAreRefusedOrEqual) {
  const ScratchFile file("flip.db");
  record_small(file.path());
  expect_flips_found(file.path(), 0, 61);
}

TEST(RecordingDamage, SlowEveryFlippedByteIsRefusedOrEqual) {
  const ScratchFile file("flip_all.db");
  record_small(file.path());
  expect_flips_found(file.path(), 0, 1);
}

TEST(RecordingDamage, EveryCutIsRefused) {
  const ScratchFile file("cut.db");
  record_small(file.path());
  for (std::size_t size = std::filesystem::file_size(file.path()); size > 0;) {
    size = size > 700 ? size - 700 : 0;
    std::filesystem::resize_file(file.path(), size);
    EXPECT_FALSE(everything(file.path()).has_value()) << size;
  }
}

TEST(RecordingDamage, ForeignFilesAreNamedAsSuch) {
  const ScratchFile file("foreign.db");
  const auto missing = record::RunReader::open(file.path());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kIo);
  std::ofstream(file.path()) << "name: a scenario and no recording\n";
  const auto text = record::RunReader::open(file.path());
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kCorrupt);
  std::filesystem::remove(file.path());
  sqlite3* handle = nullptr;
  sqlite3_open(file.path().c_str(), &handle);
  sqlite3_exec(handle, "CREATE TABLE run(id INTEGER PRIMARY KEY)", nullptr, nullptr, nullptr);
  sqlite3_close(handle);
  const auto foreign = record::RunReader::open(file.path());
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Errc::kCorrupt);
  EXPECT_NE(foreign.error().detail.find("no recording of areal-sim"), std::string::npos) << foreign.error().detail;
}

void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  sqlite3_close(handle);
}

TEST(RecordingDamage, NewerVersionIsRefusedWithItsNumber) {
  const ScratchFile file("newer.db");
  record_small(file.path());
  run_sql(file.path(), "PRAGMA user_version=3");
  const auto newer = record::RunReader::open(file.path());
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Errc::kUnsupported);
  EXPECT_NE(newer.error().detail.find("version 3; this program reads versions up to 2"), std::string::npos)
      << newer.error().detail;
}

// What looks like an older recording is read by other rules, so the header alone must not decide.
TEST(RecordingDamage, AnotherVersionInTheHeaderIsRefused) {
  for (const bool complete : {true, false}) {
    const ScratchFile file("older.db");
    record_small(file.path());
    if (!complete) run_sql(file.path(), "PRAGMA application_id=" + std::to_string(record::kOpenId));
    run_sql(file.path(), "PRAGMA user_version=1");
    const auto older = record::RunReader::open(file.path());
    ASSERT_FALSE(older) << complete;
    EXPECT_EQ(older.error().code, Errc::kCorrupt);
  }
}

// A recording of version 1, of 4 steps and an update, as the program that knew no other version wrote it.
TEST(RecordingDamage, RecordingsOfVersion1AreRead) {
  const auto reader = record::RunReader::open(std::string(AREAL_SOURCE_DIR) + "/tests/data/recordings/version1.db");
  ASSERT_TRUE(reader) << reader.error().detail;
  EXPECT_EQ((*reader)->version(), 1);
  EXPECT_EQ((*reader)->verdict(), "violated");
  LineCollector told;
  SyntheticRun run(told);
  for (int i = 0; i < 4; ++i) {
    run.step();
    if (i == 2) run.update(1);
  }
  LineCollector heard;
  ASSERT_TRUE((*reader)->read_all(heard));
  EXPECT_EQ(told.lines, heard.lines);
}

// Rows that were changed through SQLite leave a sound file; only the content digest can tell.
TEST(RecordingDamage, EditedRowsAreRefused) {
  for (const char* edit : {"UPDATE run SET value='held' WHERE key='verdict'", "DELETE FROM violation",
                           "INSERT INTO fault VALUES(9999,0,'e0','cut_link',0,'')", "UPDATE request SET label=label+1",
                           "CREATE TABLE extra(id INTEGER PRIMARY KEY)", "CREATE INDEX by_node ON event(node)"}) {
    const ScratchFile file("edited.db");
    record_small(file.path());
    run_sql(file.path(), edit);
    const auto edited = record::RunReader::open(file.path());
    ASSERT_FALSE(edited) << edit;
    EXPECT_EQ(edited.error().code, Errc::kCorrupt) << edit;
  }
}

TEST(RecordingDamage, MigrationRunsEveryStepInOrder) {
  const ScratchFile file("migrate.db");
  record_small(file.path());
  auto database = record::Database::open_read(file.path());
  ASSERT_TRUE(database);
  auto copy = database->copy_in_memory();
  ASSERT_TRUE(copy);
  const std::array<record::Migration, 2> steps{{{2, "ALTER TABLE fault ADD COLUMN origin TEXT NOT NULL DEFAULT 'plan'"},
                                                {3, "UPDATE fault SET origin = 'plan2'"}}};
  ASSERT_TRUE(record::migrate(*copy, 2, 4, steps));
  EXPECT_EQ(*copy->integer("PRAGMA user_version"), 4);
  EXPECT_EQ(*copy->text("SELECT origin FROM fault LIMIT 1"), "plan2");
  EXPECT_EQ(*database->integer("PRAGMA user_version"), 2);
  const Status missing = record::migrate(*copy, 4, 5, steps);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kUnsupported);
}

}  // namespace
}  // namespace areal::testing
