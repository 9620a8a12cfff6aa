// A dump prints the events that were asked for, with names, and nothing else.
#include "replay/analyse/dump.h"

#include <gtest/gtest.h>

#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

struct Lines : analyse::LineOut {
  void line(std::string_view text) override { all.emplace_back(text); }
  std::vector<std::string> all;
};

class Dump : public ::testing::Test {
 protected:
  void SetUp() override {
    record_synthetic(file_.path(), 60, {.block_events = 32});
    auto opened = record::RunReader::open(file_.path());
    ASSERT_TRUE(opened);
    reader_ = std::move(*opened);
    ASSERT_TRUE(reader_->read_all(all_));
  }
  std::vector<std::string> lines(const analyse::DumpFilter& filter) {
    Lines out;
    const auto count = analyse::dump(*reader_, filter, out);
    EXPECT_TRUE(count);
    EXPECT_EQ(*count, out.all.size());
    return out.all;
  }

  const ScratchFile file_{"dump.db"};
  std::unique_ptr<record::RunReader> reader_;
  LineCollector all_;
};

TEST_F(Dump, PrintsAllEvents) {
  EXPECT_EQ(lines({}).size(), all_.events.size());
  EXPECT_EQ(lines({.with_states = true, .with_decisions = true}).size(), all_.lines.size());
}

TEST_F(Dump, RangesIncludeBothEnds) {
  for (const std::uint64_t from : {1U, 31U, 32U, 33U, 64U, 150U}) {
    const auto found = lines({.from = from, .to = from + 2});
    ASSERT_EQ(found.size(), 3U) << from;
    EXPECT_NE(found[0].find(" " + std::to_string(from) + " "), std::string::npos) << found[0];
  }
  EXPECT_TRUE(lines({.from = all_.events.size() + 1}).empty());
}

TEST_F(Dump, FiltersByNodeAndKind) {
  std::size_t on_e0 = 0;
  std::size_t notes = 0;
  for (const port::TraceEvent& event : all_.events) {
    on_e0 += event.node == NodeId{2} ? 1 : 0;
    notes += event.body.kind == port::LeaseChanged::kKind ? 1 : 0;
  }
  EXPECT_EQ(lines({.node = "e0"}).size(), on_e0);
  EXPECT_EQ(lines({.node = "e0/*"}).size(), on_e0);
  EXPECT_EQ(lines({.kind = "lease_changed"}).size(), notes);
  EXPECT_EQ(lines({.kind = "cut_*"}).size(), 1U);
  const auto fault = lines({.kind = "cut_link"});
  EXPECT_NE(fault[0].find("fault"), std::string::npos);
  EXPECT_NE(fault[0].find("cut_link{from=1 to=2}"), std::string::npos) << fault[0];
}

TEST(Pattern, StarsAndMarks) {
  EXPECT_TRUE(analyse::matches_pattern("*", ""));
  EXPECT_TRUE(analyse::matches_pattern("e*", "e0"));
  EXPECT_TRUE(analyse::matches_pattern("e?/*er", "e1/receiver"));
  EXPECT_TRUE(analyse::matches_pattern("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(analyse::matches_pattern("e?", "e10"));
  EXPECT_FALSE(analyse::matches_pattern("*a*b", "ab_"));
  EXPECT_FALSE(analyse::matches_pattern("", "e"));
}

}  // namespace
}  // namespace areal::testing
