// A sender's part of an update: in which order it votes, inverts and sends, and what is left when it is cut short.
#include "engine/proto/update_sender.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/unit/member_driver.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)
using Labels = std::vector<std::string>;

constexpr Execute kFirst{1, 1, 1, UpdateMode::kFull, FullReason::kNotSeeded, 0};
constexpr Execute kSecond{1, 2, 1, UpdateMode::kDelta, FullReason::kNone, 1};
constexpr double kRate = 3e-6;

const Labels kPayloads{"min", "move", "sum", "barrier"};

// Holds version 1 by a full update, and made one step since.
MemberDriver<UpdateSender> seeded(MemberOptions options = sender_options()) {
  MemberDriver<UpdateSender> driver{UpdateSender(std::move(options))};
  driver.connect(1);
  driver.attempt(kFirst);
  driver.commit(kFirst);
  driver.tell(StepMade{2, 1, std::bit_cast<std::uint64_t>(kRate), 0});
  driver.log.clear();
  return driver;
}

bool all_posted(const MemberDriver<UpdateSender>& driver) {
  return driver.only({"reduce"}) ==
         Labels{"reduce 0 copies 1", "reduce 1 copies 1", "reduce 1 copies 2", "reduce 2 copies 2"};
}

TEST(UpdateSender, ADeltaGoesInThisOrder) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.attempt(kSecond);
  const Labels wanted{"release gradients",
                      "compute capture",
                      "max need",
                      "compute invert 0",
                      "reduce 0 copies 1",
                      "compute compare 0",
                      "compute invert 1",
                      "reduce 1 copies 1",
                      "reduce 1 copies 2",
                      "compute compare 1",
                      "compute invert 2",
                      "reduce 2 copies 2",
                      "compute compare 2",
                      "max masks",
                      "min mode",
                      "reserve staging",
                      "compute pack_delta",
                      "move counts 0",
                      "move data 0",
                      "move counts 1",
                      "move data 1",
                      "sum",
                      "barrier",
                      "release staging",
                      "reserve gradients",
                      "reply"};
  EXPECT_EQ(driver.log, wanted);
  const Executed said = driver.replies<Executed>().back();
  EXPECT_EQ(said.outcome, Outcome::kOk);
  EXPECT_EQ(said.mode, UpdateMode::kDelta);
  EXPECT_EQ(said.reason, FullReason::kNone);
  EXPECT_EQ(driver.held_buffers(port::MemoryTag::kGradients), 1U);
  EXPECT_EQ(driver.held_buffers(port::MemoryTag::kStaging), 0U);
  for (const auto& note : driver.noted<port::WindowCompared>()) EXPECT_EQ(note.pending, 0U);
  for (const port::StartCompute& compute : driver.computes) {
    if (compute.what != port::ComputeKind::kInvert) continue;
    EXPECT_EQ(compute.rate, std::bit_cast<std::uint64_t>(kRate));
  }
}

TEST(UpdateSender, EveryReductionHasTwoForEachParameterAndTheNamesOfItsWindow) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.attempt(kSecond);
  std::vector<std::uint64_t> operations;
  std::vector<std::uint64_t> tags;
  for (const port::PostBatch& batch : driver.batches) {
    if (batch.kind != port::BatchKind::kReduce) continue;
    operations.push_back(batch.elements);
    tags.push_back(batch.tag);
  }
  EXPECT_EQ(operations, (std::vector<std::uint64_t>{8, 4, 6, 10}));
  EXPECT_EQ(tags, (std::vector<std::uint64_t>{11, 12, 13, 14}));
}

TEST(UpdateSender, AWindowThatNobodyElseHoldsIsNotReduced) {
  MemberDriver<UpdateSender> driver = seeded(sender_options(true, 1));
  driver.attempt(kSecond);
  EXPECT_EQ(driver.only({"reduce"}), (Labels{"reduce 0 copies 1", "reduce 1 copies 1"}));
  EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kDelta);
}

// Peers wait in the vote: whoever cannot capture must still come to it.
TEST(UpdateSender, AFailedCaptureIsAVoteForAFullUpdate) {
  for (const auto& [outcome, reason] : {std::pair{Outcome::kFailed, FullReason::kInversionError},
                                        std::pair{Outcome::kRefused, FullReason::kInversionInfeasible}}) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.endings["compute capture"] = {outcome};
    driver.attempt(kSecond);
    EXPECT_EQ(driver.only({"max", "min", "compute", "move"}),
              (Labels{"compute capture", "max need", "max masks", "min mode", "compute pack", "move dense 0",
                      "move dense 1"}));
    EXPECT_EQ(driver.replies<Executed>().back().outcome, Outcome::kOk);
    EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kFull);
    EXPECT_EQ(driver.replies<Executed>().back().reason, reason);
  }
}

TEST(UpdateSender, OtherWeightsThanThoseOfTheVersionFailTheAttempt) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.endings["compute capture"] = {Outcome::kMismatch};
  driver.attempt(kSecond);
  EXPECT_EQ(driver.replies<Executed>().back().outcome, Outcome::kMismatch);
}

// Copies wait in their reductions: whoever cannot invert must still post all of them.
TEST(UpdateSender, AFailedInversionIsReducedAllTheSame) {
  for (const std::string window : {"0", "1", "2"}) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.endings["compute invert " + window] = {Outcome::kFailed};
    const std::size_t before = driver.batches.size();
    driver.attempt(kSecond);
    EXPECT_TRUE(all_posted(driver));
    for (std::size_t i = before; i < driver.batches.size(); ++i) {
      const port::PostBatch& batch = driver.batches[i];
      if (batch.kind != port::BatchKind::kReduce) continue;
      EXPECT_EQ(batch.count, batch.part >= std::stoul(window) ? 1U : 0U) << "sticky from the failure on";
      EXPECT_EQ(batch.value == 0, batch.part == std::stoul(window)) << "what failed adds nothing";
    }
    EXPECT_EQ(driver.replies<Executed>().back().outcome, Outcome::kOk);
    EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kFull);
    EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kInversionError);
  }
}

TEST(UpdateSender, AFailedComparisonGoesOnAndIsFull) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.endings["compute compare 0"] = {Outcome::kFailed};
  driver.attempt(kSecond);
  EXPECT_TRUE(all_posted(driver));
  EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kInversionError);
}

TEST(UpdateSender, WhatOneOfTheCopiesWishesIsFullButEndsNothingEarly) {
  for (const std::string label : {"reduce 0 copies 1", "reduce 1 copies 2", "reduce 2 copies 2"}) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.endings[label] = {.value = 9, .count = 1};
    driver.attempt(kSecond);
    EXPECT_TRUE(all_posted(driver));
    EXPECT_EQ(driver.only({"compute pack"}), (Labels{"compute pack"}));
    EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kInversionInfeasible);
  }
}

TEST(UpdateSender, WhatItsOwnInversionOrComparisonFindsIsFull) {
  for (const std::string label : {"compute invert 0", "compute invert 2", "compute compare 1"}) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.endings[label] = {.count = 1, .total = 1};
    driver.attempt(kSecond);
    EXPECT_TRUE(all_posted(driver));
    EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kInversionInfeasible) << label;
  }
}

TEST(UpdateSender, AVoteOfAnotherRankIsNotAReasonOfItsOwn) {
  for (const auto& [label, value] :
       {std::pair{"max need", 1U}, std::pair{"max masks", 1U}, std::pair{"min mode", 0U}}) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.endings[label] = {.value = value};
    driver.attempt(kSecond);
    EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kFull);
    EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kPeerRank) << label;
    EXPECT_EQ(driver.only({"max", "min"}), (Labels{"max need", "max masks", "min mode"}));
    EXPECT_EQ(driver.only({"reduce"}).empty(), std::string(label) == "max need");
  }
}

TEST(UpdateSender, AGapBetweenVersionsIsFullBeforeAnythingMoves) {
  for (const Execute& asked : {Execute{1, 3, 1, UpdateMode::kDelta, FullReason::kNone, 1},
                               Execute{1, 3, 1, UpdateMode::kDelta, FullReason::kNone, 2}}) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.attempt(asked);
    EXPECT_TRUE(driver.only({"reduce", "move data"}).empty());
    EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kBaseMismatch);
  }
}

TEST(UpdateSender, TheFirstUpdateIsFullWhateverItIsAskedToBe) {
  MemberDriver<UpdateSender> driver{UpdateSender(sender_options())};
  driver.connect(1);
  driver.attempt({1, 1, 1, UpdateMode::kDelta, FullReason::kNone, 0});
  EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kNotSeeded);
  MemberDriver<UpdateSender> known = seeded();
  known.endings["compute capture"] = {.count = 0};  // No watermarks.
  known.attempt(kSecond);
  EXPECT_EQ(known.replies<Executed>().back().reason, FullReason::kInitialFull);
}

TEST(UpdateSender, OnlyTheCommitMovesTheTracker) {
  MemberDriver<UpdateSender> driver = seeded();
  EXPECT_EQ(driver.protocol().tracker().base_version(), Version{1});
  driver.attempt(kSecond);
  EXPECT_EQ(driver.protocol().tracker().base_version(), Version{1});
  EXPECT_EQ(driver.protocol().tracker().deltas_since_anchor(), 0U);
  driver.held.insert("compute mark_synced");
  driver.commit(kSecond);
  EXPECT_EQ(driver.protocol().tracker().base_version(), Version{1});
  EXPECT_TRUE(driver.replies<Committed>().size() == 1) << "of the first update";
  driver.release();
  EXPECT_EQ(driver.protocol().tracker().base_version(), Version{2});
  EXPECT_EQ(driver.protocol().tracker().deltas_since_anchor(), 1U);
  EXPECT_EQ(driver.protocol().member().version(), 2U);
  EXPECT_EQ(driver.replies<Committed>().back().outcome, Outcome::kOk);
}

TEST(UpdateSender, AfterAnchorIntervalDeltasComesAFullOne) {
  MemberOptions options = sender_options();
  options.anchor_interval = 3;
  MemberDriver<UpdateSender> driver = seeded(std::move(options));
  std::vector<Version> fulls;
  for (Version version = 2; version <= 10; ++version) {
    const Execute asked{1, version, 1, UpdateMode::kDelta, FullReason::kNone, version - 1};
    driver.attempt(asked);
    if (driver.replies<Executed>().back().mode == UpdateMode::kFull) {
      fulls.push_back(version);
      EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kAnchorInterval);
    }
    driver.commit(asked);
  }
  EXPECT_EQ(fulls, (std::vector<Version>{5, 9}));
}

TEST(UpdateSender, WhatIsNotOnRecordIsSentInFullNext) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.attempt(kSecond);
  driver.endings["compute mark_synced"] = {Outcome::kFailed};
  driver.commit(kSecond);
  EXPECT_EQ(driver.replies<Committed>().back().outcome, Outcome::kOk) << "the engines hold the right bytes";
  driver.attempt({1, 3, 1, UpdateMode::kDelta, FullReason::kNone, 2});
  EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kCommitFailed);
}

TEST(UpdateSender, ASkippedStepKeepsTheRateAndReplacedWeightsForgetIt) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.tell(StepMade{2, 0, std::bit_cast<std::uint64_t>(1.0), 0});
  driver.attempt(kSecond);
  EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kDelta);
  const auto rate_of = [](const MemberDriver<UpdateSender>& one) {
    return std::ranges::find(one.computes, port::ComputeKind::kInvert, &port::StartCompute::what)->rate;
  };
  EXPECT_EQ(rate_of(driver), std::bit_cast<std::uint64_t>(kRate));
  MemberDriver<UpdateSender> replaced = seeded();
  replaced.tell(WeightsReplaced{1});
  replaced.attempt(kSecond);
  EXPECT_EQ(replaced.replies<Executed>().back().reason, FullReason::kNotSeeded);
}

TEST(UpdateSender, WithDeltasOffNobodyVotes) {
  MemberDriver<UpdateSender> driver{UpdateSender(sender_options(false))};
  driver.connect(1);
  const Execute asked{1, 1, 1, UpdateMode::kFull, FullReason::kNoDelta, 0};
  driver.attempt(asked);
  EXPECT_EQ(driver.log, (Labels{"release gradients", "reserve staging", "compute pack", "move dense 0", "move dense 1",
                                "sum", "barrier", "release staging", "reserve gradients", "reply"}));
  EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kNoDelta);
  driver.log.clear();
  driver.commit(asked);
  EXPECT_EQ(driver.log, (Labels{"reply"}));
}

// Giving memory back may take longer than the commit: the next attempt must not wait for a buffer that goes.
TEST(UpdateSender, StagingMemoryThatIsStillBeingGivenBackStopsNobody) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.held.insert("release staging");
  driver.attempt(kSecond);
  driver.commit(kSecond);
  const Execute next{1, 3, 1, UpdateMode::kDelta, FullReason::kNone, 2};
  driver.attempt(next);
  EXPECT_EQ(driver.replies<Executed>().size(), 3U);
  driver.ask(Teardown{1, false});
  driver.release();
  EXPECT_EQ(driver.replies<TornDown>().size(), 1U);
  EXPECT_EQ(driver.held_buffers(port::MemoryTag::kStaging), 0U);
}

TEST(UpdateSender, MemoryForGradientsIsAskedForAgain) {
  MemberDriver<UpdateSender> driver = seeded();
  driver.endings["reserve gradients"] = {Outcome::kNoMemory};
  driver.held.insert("reserve gradients");
  driver.attempt(kSecond);
  EXPECT_EQ(driver.replies<Executed>().size(), 1U) << "not answered without them";
  driver.release();
  EXPECT_EQ(driver.only({"reserve gradients"}).size(), 8U);
  EXPECT_EQ(driver.replies<Executed>().back().outcome, Outcome::kNoMemory);
  driver.endings.clear();
  driver.ask(AbortUpdate{1, 2, 1});
  EXPECT_EQ(driver.held_buffers(port::MemoryTag::kGradients), 1U);
  EXPECT_EQ(driver.replies<UpdateAborted>().size(), 1U);
}

// A rank whose memory is taken when it loads must not be silent for ever: the model is there.
TEST(UpdateSender, ARankWithoutGradientMemoryStillReports) {
  MemberDriver<UpdateSender> late{UpdateSender(sender_options())};
  late.endings["reserve gradients"] = {Outcome::kNoMemory};
  late.held.insert("reserve gradients");
  late.begin();
  late.ask(ReportMeta{});
  EXPECT_TRUE(late.replies<MetaReport>().empty());
  late.ask(Teardown{0, false});  // It comes while the memory is being asked for.
  late.release();
  EXPECT_EQ(late.replies<TornDown>().size(), 1U);
  EXPECT_EQ(late.replies<MetaReport>().size(), 1U);
}

// What must hold after an attempt was cut short, wherever it stood.
void expect_clean(MemberDriver<UpdateSender>& driver, const std::string& label) {
  EXPECT_TRUE(driver.broken.empty()) << label << ": " << driver.broken.front();
  EXPECT_EQ(driver.still_open(), 0U) << label;
  EXPECT_EQ(driver.held_buffers(port::MemoryTag::kGradients), 1U) << label;
  EXPECT_EQ(driver.held_buffers(port::MemoryTag::kStaging), 0U) << label;
  EXPECT_EQ(driver.protocol().member().phase(), MemberPhase::kIdle) << label;
  EXPECT_EQ(driver.log.back(), "reply") << label << ": the end is answered last";
  EXPECT_NE(driver.protocol().tracker().base_version(), Version{2}) << label;
  // A new epoch works, and begins with a full update.
  driver.connect(2);
  const Execute next{2, 2, 2, UpdateMode::kDelta, FullReason::kNone, 1};
  driver.attempt(next);
  EXPECT_EQ(driver.replies<Executed>().back().outcome, Outcome::kOk) << label;
  EXPECT_EQ(driver.replies<Executed>().back().reason, FullReason::kPeerLost) << label;
  driver.commit(next);
  const Execute delta{2, 3, 1, UpdateMode::kDelta, FullReason::kNone, 2};
  driver.attempt(delta);
  EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kDelta) << label;
}

Labels stages() {
  MemberDriver<UpdateSender> driver = seeded();
  driver.attempt(kSecond);
  Labels labels = driver.log;
  labels.pop_back();
  labels.push_back("compute mark_synced");
  return labels;
}

TEST(UpdateSender, AnAbortAtAnyStageGivesEverythingBack) {
  const Labels labels = stages();
  EXPECT_EQ(labels.size(), 26U);
  for (const std::string& label : labels) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.held.insert(label);
    driver.attempt(kSecond);
    if (label == "compute mark_synced") driver.commit(kSecond);
    ASSERT_GE(driver.still_open(), 1U) << label;
    driver.ask(AbortUpdate{1, 2, 1});
    driver.release();
    EXPECT_EQ(driver.replies<UpdateAborted>().size(), 1U) << label;
    expect_clean(driver, label);
  }
}

// If the abort was lost, the teardown is the first word of the end.
TEST(UpdateSender, ATeardownAtAnyStageGivesEverythingBack) {
  for (const std::string& label : stages()) {
    MemberDriver<UpdateSender> driver = seeded();
    driver.held.insert(label);
    driver.attempt(kSecond);
    if (label == "compute mark_synced") driver.commit(kSecond);
    driver.ask(Teardown{1, false});
    driver.release();
    EXPECT_EQ(driver.replies<TornDown>().size(), 1U) << label;
    expect_clean(driver, label);
  }
}

TEST(UpdateSender, AnOperationThatFailsAtAnyStageIsAnsweredOnce) {
  for (const std::string& label : stages()) {
    const bool is_memory = label.starts_with("re") && !label.starts_with("reduce");
    if (is_memory || label == "compute mark_synced") continue;
    MemberDriver<UpdateSender> driver = seeded();
    driver.endings[label] = {Outcome::kPeerGone};
    driver.attempt(kSecond);
    EXPECT_EQ(driver.replies<Executed>().size(), 2U) << label << ": one of each attempt";
    driver.endings.clear();
    driver.ask(AbortUpdate{1, 2, 1});
    expect_clean(driver, label);
  }
}

TEST(UpdateSender, ATimeoutWaitsForTheAbortAndThenGivesEverythingBack) {
  for (const std::string& label : stages()) {
    if (label == "compute mark_synced" || label == "release staging") continue;  // It does not wait for these.
    MemberDriver<UpdateSender> driver = seeded();
    driver.held.insert(label);
    driver.attempt(kSecond);
    driver.member.fire(TimerId{1});
    EXPECT_EQ(driver.member.sends<Executed>().size(), 1U) << label;
    driver.release();
    driver.ask(AbortUpdate{1, 2, 1});
    expect_clean(driver, label);
  }
}

TEST(UpdateSender, ASavedSenderGoesOnTheSameWay) {
  MemberDriver<UpdateSender> plain = seeded();
  plain.attempt(kSecond);
  for (const std::string& label : stages()) {
    if (label == "compute mark_synced") continue;
    MemberDriver<UpdateSender> driver = seeded();
    driver.held.insert(label);
    driver.attempt(kSecond);
    EXPECT_TRUE(driver.member.reload(UpdateSender(sender_options()))) << label;
    driver.release();
    EXPECT_EQ(driver.log, plain.log) << label;
  }
}

}  // namespace
}  // namespace areal::test
