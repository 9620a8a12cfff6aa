// The registry of defects: every entry is complete, and every rule fits the kinds that exist.
#include "sim/defect/defect.h"

#include <gtest/gtest.h>

#include "engine/port/types.h"
#include "engine/proto/messages.h"
#include "engine/proto/write_lock.h"
#include "sim/fault/rule_hook.h"

namespace areal::sim {
namespace {

KindTable all_kinds() {
  KindTable kinds;
  port::add_kinds(kinds);
  proto::add_kinds(kinds);
  proto::add_lock_kinds(kinds);
  return kinds;
}

TEST(Defect, EveryEntryIsCompleteAndFoundByItsName) {
  for (const Defect& defect : all_defects()) {
    EXPECT_EQ(find_defect(defect.name), &defect);
    EXPECT_FALSE(defect.source.empty()) << defect.name;
    EXPECT_TRUE(defect.sentence.ends_with('.')) << defect.name;
    EXPECT_FALSE(defect.policy.empty() && rules_of(defect).empty()) << defect.name << " is made of nothing";
  }
  EXPECT_EQ(find_defect("no_such_defect"), nullptr);
}

TEST(Defect, EveryRuleFitsTheKindsThatExist) {
  const KindTable kinds = all_kinds();
  const std::vector<std::string> engine{"update_receiver", "engine_server"};
  const NodeDirectory directory{{},
                                {"gateway", {"gateway"}},
                                {"controller", {"train_loop", "rollout_pool", "pause_gate", "strict_drain"}},
                                {"trainer.0", {"update_sender", "train_rank"}},
                                {"engine.0.rank.0", engine},
                                {"engine.1.rank.0", engine}};
  std::size_t rules = 0;
  for (const Defect& defect : all_defects()) {
    const auto hook = RuleHook::make(rules_of(defect), kinds, directory);
    EXPECT_TRUE(hook.has_value()) << defect.name << ": " << (hook ? "" : hook.error().detail);
    rules += rules_of(defect).size();
  }
  EXPECT_GE(rules, 12U);
}

// What the rule of a defect does to a batch, and what it leaves alone.
TEST(Defect, PlanFromStorageDtypeChangesWhatIsSentOnly) {
  const KindTable kinds = all_kinds();
  const NodeDirectory directory{{}, {"trainer.0", {"sender"}}};
  auto hook = RuleHook::make(rules_of(*find_defect("plan_from_storage_dtype")), kinds, directory);
  ASSERT_TRUE(hook.has_value());
  const auto dtype_after = [&](port::BatchKind kind) {
    port::PostBatch batch;
    batch.kind = kind;
    batch.dtype = DType::kBf16;
    batch.storage_dtype = DType::kF32;
    port::Passing passing;
    passing.node = {1};
    passing.record = to_record(batch);
    std::vector<port::Passing> out;
    hook->on_pass(passing, out);
    return from_record<port::PostBatch>(out[0].record).dtype;
  };
  EXPECT_EQ(dtype_after(port::BatchKind::kSend), DType::kF32);
  EXPECT_EQ(dtype_after(port::BatchKind::kReceive), DType::kBf16);
}

}  // namespace
}  // namespace areal::sim
