// The tables hold what the notes said, and the guide to them is true: its columns are the schema's, its queries run.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "replay/record/database.h"
#include "replay/record/meta_file.h"
#include "replay/record/schema.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

class RecordTables : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto recorder = open_recorder(file_.path());
    SyntheticRun run(*recorder);
    for (Version version = 1; version <= 2; ++version) {
      run.step();
      run.update(version);
    }
    // What never ends is there with NULL.
    run.note(NodeId{1}, SlotId{1}, port::UpdateStarted{2, 3, 1, port::UpdateMode::kDelta, port::FullReason::kNone});
    run.effect(NodeId{3}, SlotId{0}, port::JoinGroup{GroupId{9}, port::Backend::kGloo, 0, 2, 29'600});
    run.effect(NodeId{3}, SlotId{0},
               port::PostBatch{.group = {9}, .batch = {1}, .kind = port::BatchKind::kBarrier, .buffer = {}});
    recorder->add_violation({"INV-1", "safety", run.seq(), NodeId{2}, "it's \"wrong\""});
    ASSERT_TRUE(recorder->finish({.verdict = "violated", .counts = {}}));
    auto opened = record::Database::open_read(file_.path());
    ASSERT_TRUE(opened);
    database_.emplace(std::move(*opened));
  }

  // All rows of a query, cells with | between them, rows with a line end after them.
  std::string rows(const std::string& sql) {
    auto statement = database_->prepare(sql);
    if (!statement) return statement.error().detail;
    std::string text;
    while (true) {
      const auto more = statement->next();
      if (!more) return more.error().detail;
      if (!*more) return text;
      for (int i = 0; i < statement->columns(); ++i) text += (i > 0 ? "|" : "") + statement->text(i);
      text += "\n";
    }
  }

  const ScratchFile file_{"tables.db"};
  std::optional<record::Database> database_;
};

TEST_F(RecordTables, VersionsAnchorsAndTransfers) {
  EXPECT_EQ(rows("SELECT node, version, epoch, attempt, mode, reason, bytes FROM weight_version ORDER BY seq"),
            "gateway|1|1|2|full|retry|4096\ngateway|2|1|2|full|retry|4096\n");
  EXPECT_EQ(rows("SELECT node, epoch, version, attempt, reason FROM anchor ORDER BY seq"),
            "gateway|1|1|2|retry\ngateway|1|2|2|retry\n");
  EXPECT_EQ(
      rows("SELECT version, attempt, mode, reason, outcome, peer FROM transfer ORDER BY seq"),
      "1|1|full|not_seeded|peer_gone|e0\n1|2|full|retry|ok|\n2|1|full|not_seeded|peer_gone|e0\n2|2|full|retry|ok|\n"
      "3|1|delta|none||\n");
  EXPECT_EQ(rows("SELECT version FROM transfer WHERE outcome IS NULL AND ended_ns IS NULL AND ended_seq IS NULL"),
            "3\n");
  EXPECT_EQ(rows("SELECT DISTINCT ended_ns - started_ns FROM transfer WHERE attempt = 2"), "500\n");
}

TEST_F(RecordTables, LeasesJoinsAndCollectives) {
  EXPECT_EQ(rows("SELECT host, port, holder, incarnation, leased_ns IS NULL, bound_ns IS NULL, released_ns IS NULL "
                 "FROM port_lease ORDER BY seq"),
            "2|29500|e0|1|0|0|0\n2|29502|e0|2|0|1|1\n2|29500|e0|1|0|0|0\n2|29503|e0|2|0|1|1\n");
  EXPECT_EQ(rows("SELECT node, comm_group, backend, rank, world, port, outcome FROM comm ORDER BY seq"),
            "e0|1|nccl|1|2|29500|ok\ne0|2|nccl|1|2|29500|ok\ne1|9|gloo|0|2|29600|\n");
  EXPECT_EQ(rows("SELECT node, kind, tag, value, count, outcome, result_value, result_count, done_ns - posted_ns "
                 "FROM collective ORDER BY seq"),
            "e0|min|7|5|6|ok|3|4|500\ne0|min|7|5|6|ok|3|4|500\ne1|barrier|0|0|0||||\n");
}

TEST_F(RecordTables, ReceiptsRequestsFaultsAndNotes) {
  EXPECT_EQ(rows("SELECT node, kind, subject, role, count, holders, digest FROM receipt WHERE subject = 1"),
            "e0|weights|1|engine|12|1|0000000000000001fffffffffffffffe\n");
  EXPECT_EQ(rows("SELECT sample, engine, pinned, label, tokens, ending FROM request ORDER BY seq"),
            "1|0|0|1|128|length\n2|0|1|2|128|length\n");
  EXPECT_EQ(rows("SELECT node, kind, text FROM fault LIMIT 1"), "gateway|cut_link|cut_link{from=1 to=2}\n");
  EXPECT_EQ(rows("SELECT count(*) FROM fault JOIN event USING (seq, at_ns, node, kind, cause, text)"), "2\n");
  EXPECT_EQ(rows("SELECT text FROM event WHERE kind = 'anchor_set' LIMIT 1"),
            "anchor_set{epoch=1 version=1 attempt=2 reason=retry}\n");
  EXPECT_EQ(rows("SELECT invariant, verdict, node, message FROM violation"), "INV-1|safety|e0|it's \"wrong\"\n");
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_F(RecordTables, EveryQueryOfTheGuideRunsAndFindsSomething) {
  const std::string guide = read_text(AREAL_SOURCE_DIR "/docs/recording.md");
  int queries = 0;
  for (std::size_t at = guide.find("```sql\n"); at != std::string::npos; at = guide.find("```sql\n", at + 1)) {
    const std::size_t start = at + 7;
    const std::string sql = guide.substr(start, guide.find("```", start) - start);
    auto statement = database_->prepare(sql);
    ASSERT_TRUE(statement) << sql << statement.error().detail;
    const auto found = statement->next();
    ASSERT_TRUE(found) << sql << found.error().detail;
    EXPECT_TRUE(*found) << "finds nothing: " << sql;
    ++queries;
  }
  EXPECT_GE(queries, 8);
}

TEST_F(RecordTables, TheGuideNamesEveryTableAndColumn) {
  const std::string guide = read_text(AREAL_SOURCE_DIR "/docs/recording.md");
  for (const record::TableInfo& table : record::tables()) {
    const std::string name(table.name);
    std::string columns;
    auto statement = database_->prepare("SELECT name FROM pragma_table_info('" + name + "') ORDER BY cid");
    ASSERT_TRUE(statement);
    int width = 0;
    for (; *statement->next(); ++width) columns += (width > 0 ? ", " : "") + statement->text(0);
    EXPECT_EQ(width, table.width) << name;
    const std::size_t row = guide.find("\n| `" + name + "` |");
    ASSERT_NE(row, std::string::npos) << name;
    const std::string line = guide.substr(row + 1, guide.find('\n', row + 1) - row - 1);
    EXPECT_TRUE(line.ends_with("| " + columns + " |")) << line << "\nhas not " << columns;
  }
}

TEST(RecordMeta, IsOneObjectOfStrings) {
  const ScratchFile file("meta.db");
  const std::vector<std::pair<std::string, std::string>> values{{"host", "a \"b\"\\c\n\x01"}, {"wall", "12 s"}};
  ASSERT_TRUE(record::write_meta(file.path(), values));
  const std::string text = read_text(file.path() + ".meta.json");
  EXPECT_EQ(text.find("{\n  \"host\": \"a \\\"b\\\"\\\\c\\u000a\\u0001\",\n  \"wall\": \"12 s\",\n  \"sqlite\": \""),
            0U)
      << text;
  EXPECT_TRUE(text.ends_with("\"\n}\n"));
  EXPECT_FALSE(record::write_meta("/proc/none/run.db", values));
}

}  // namespace
}  // namespace areal::testing
