// The registry of invariants: complete, without double names, and equal to its document.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "sim/check/judge.h"

namespace areal::sim {
namespace {

const std::string kDocument = std::string(AREAL_SOURCE_DIR) + "/docs/invariants.md";

TEST(Invariants, DocumentIsMadeFromTheTable) {
  if (std::getenv("AREAL_WRITE_DOCS") != nullptr) std::ofstream(kDocument) << render_invariants();
  std::ifstream file(kDocument);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), render_invariants());
}

TEST(Invariants, EveryNameAndAliasLeadsToOneRow) {
  std::vector<std::string> names;
  const auto rows = all_invariants();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::stringstream words(std::string(rows[i].name) + " " + std::string(rows[i].aliases));
    for (std::string word; words >> word;) {
      EXPECT_EQ(find_invariant(word), static_cast<InvariantId>(i)) << word;
      names.push_back(word);
    }
    EXPECT_FALSE(rows[i].sentence.empty());
  }
  for (int number = 1; number <= 20; ++number) {
    EXPECT_TRUE(find_invariant("INV-" + std::to_string(number)).has_value()) << number;
  }
  EXPECT_EQ(find_invariant("inv-label"), InvariantId::kInv1);
  EXPECT_FALSE(find_invariant("INV-21").has_value());
}

TEST(Invariants, IdsAndRowsAgree) {
  EXPECT_EQ(info_of(InvariantId::kInv1).name, "INV-1");
  EXPECT_EQ(info_of(InvariantId::kInv19).name, "INV-19");
  EXPECT_EQ(info_of(InvariantId::kStaleBound).name, "INV-STALE-BOUND");
  EXPECT_EQ(info_of(InvariantId::kXferDtype).name, "INV-XFER-DTYPE");
  EXPECT_EQ(info_of(InvariantId::kPlanRange).name, "INV-PLAN-RANGE");
  EXPECT_EQ(info_of(InvariantId::kGwOnce).name, "INV-GW-ONCE");
  EXPECT_EQ(info_of(InvariantId::kLoopPaused).name, "INV-LOOP-PAUSED");
  EXPECT_EQ(info_of(InvariantId::kDispConserve).name, "INV-DISP-CONSERVE");
  EXPECT_EQ(exit_code(info_of(InvariantId::kInv7).level), 3);
  EXPECT_EQ(exit_code(info_of(InvariantId::kInv1).level), 1);
}

// A row says "judged by X": X must exist, or the document promises what nobody does.
TEST(Invariants, NamedJudgesExist) {
  const Judges judges = make_judges(std::make_shared<JudgeSetup>());
  for (const InvariantInfo& row : all_invariants()) {
    if (row.judge.empty() || row.judge == "stuck" || row.judge == "shadow") continue;
    bool found = false;
    for (const auto& judge : judges.all()) found = found || judge->name() == row.judge;
    EXPECT_TRUE(found) << row.name << " names judge " << row.judge;
  }
}

}  // namespace
}  // namespace areal::sim
