// A receiver's part of an update: what it votes, in which order it lands and applies, and when its weights are
// unproven.
#include "engine/proto/update_receiver.h"

#include <gtest/gtest.h>

#include "tests/unit/member_driver.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)
using Labels = std::vector<std::string>;
using Receiver = MemberDriver<UpdateReceiver>;

constexpr Execute kFirst{1, 1, 1, UpdateMode::kFull, FullReason::kNotSeeded, 0};
constexpr Execute kSecond{1, 2, 1, UpdateMode::kDelta, FullReason::kNone, 1};

// Holds version 1.
Receiver seeded(bool delta = true, bool serves = true) {
  Receiver driver{UpdateReceiver(receiver_options(delta), serves)};
  driver.connect(1);
  driver.attempt(kFirst);
  driver.commit(kFirst);
  driver.log.clear();
  return driver;
}

std::uint64_t vote_of(const Receiver& driver) {
  const auto last =
      std::ranges::find_if(driver.batches.rbegin(), driver.batches.rend(),
                           [](const port::PostBatch& batch) { return batch.kind == port::BatchKind::kMin; });
  return last->value;
}

TEST(UpdateReceiver, ADeltaGoesInThisOrder) {
  Receiver driver = seeded();
  driver.attempt(kSecond);
  EXPECT_EQ(driver.log, (Labels{"min mode", "reserve staging", "move counts 0", "move data 0", "move counts 1",
                                "move data 1", "compute verify", "tell", "sum", "compute apply_delta", "compute fence",
                                "barrier", "tell", "release staging", "reply"}));
  EXPECT_EQ(vote_of(driver), 1U);
  EXPECT_EQ(driver.replies<Executed>().back().mode, UpdateMode::kDelta);
  EXPECT_TRUE(driver.protocol().quarantined()) << "until the commit";
  driver.commit(kSecond);
  EXPECT_FALSE(driver.protocol().quarantined());
  EXPECT_EQ(driver.protocol().member().version(), 2U);
}

// All members of a group must post the same batches in the same order, or they hang.
TEST(UpdateReceiver, BothSidesPostTheSameBatches) {
  const Labels shared{"min", "move", "sum", "barrier"};
  for (const bool delta : {true, false}) {
    for (const UpdateMode mode : {UpdateMode::kDelta, UpdateMode::kFull}) {
      if (!delta && mode == UpdateMode::kDelta) continue;
      MemberDriver<UpdateSender> sender{UpdateSender(sender_options(delta))};
      sender.connect(1);
      sender.attempt(kFirst);
      sender.commit(kFirst);
      Receiver receiver = seeded(delta);
      const std::size_t sent = sender.batches.size();
      const std::size_t received = receiver.batches.size();
      const FullReason reason = mode == UpdateMode::kFull ? FullReason::kRetry : FullReason::kNone;
      const Execute asked{1, 2, 1, mode, reason, 1};
      sender.attempt(asked);
      receiver.attempt(asked);
      EXPECT_EQ(sender.only(shared), receiver.only(shared));
      EXPECT_EQ(sender.only({"min"}).size(), delta ? 1U : 0U);
      EXPECT_EQ(sender.replies<Executed>().back().mode, mode);
      EXPECT_EQ(receiver.replies<Executed>().back().mode, mode);
      std::vector<std::uint64_t> tags;
      std::vector<std::uint64_t> others;
      const auto met = [](const port::PostBatch& batch) {
        return batch.group == payload_group(1) || batch.group == control_group(1);
      };
      for (std::size_t i = sent; i < sender.batches.size(); ++i) {
        if (met(sender.batches[i])) tags.push_back(sender.batches[i].tag);
      }
      for (std::size_t i = received; i < receiver.batches.size(); ++i) others.push_back(receiver.batches[i].tag);
      EXPECT_EQ(tags, others);
    }
  }
}

TEST(UpdateReceiver, ItVotesForADeltaOnlyOnTheBaseThatItHolds) {
  for (const auto& [asked, vote] :
       {std::pair{Execute{1, 3, 1, UpdateMode::kDelta, FullReason::kNone, 2}, 0U},
        std::pair{Execute{1, 2, 1, UpdateMode::kDelta, FullReason::kNone, 0}, 0U},
        std::pair{Execute{1, 2, 1, UpdateMode::kFull, FullReason::kRetry, 1}, 0U}, std::pair{kSecond, 1U}}) {
    Receiver driver = seeded();
    driver.attempt(asked);
    EXPECT_EQ(vote_of(driver), vote);
    EXPECT_EQ(driver.replies<Executed>().back().mode, vote == 1 ? UpdateMode::kDelta : UpdateMode::kFull);
    EXPECT_EQ(driver.only({"move"}).size(), vote == 1 ? 4U : 2U);
  }
}

TEST(UpdateReceiver, AnotherRanksVoteMakesItFull) {
  Receiver driver = seeded();
  driver.endings["min mode"] = {.value = 0};
  driver.attempt(kSecond);
  EXPECT_EQ(driver.only({"move", "compute"}),
            (Labels{"move dense 0", "move dense 1", "compute verify", "compute apply", "compute fence"}));
}

// Weights of which nobody knows what they are cannot be changed a little.
TEST(UpdateReceiver, UnprovenWeightsAreNoBase) {
  Receiver driver = seeded();
  driver.held.insert("compute apply_delta");
  driver.attempt(kSecond);
  driver.ask(AbortUpdate{1, 2, 1});
  EXPECT_TRUE(driver.replies<UpdateAborted>().back().quarantined);
  driver.release();
  driver.connect(2);
  driver.attempt({2, 2, 2, UpdateMode::kDelta, FullReason::kNone, 1});
  EXPECT_EQ(vote_of(driver), 0U);
  Receiver told = seeded();
  told.ask(Teardown{1, true});
  told.connect(2);
  told.attempt({2, 2, 1, UpdateMode::kDelta, FullReason::kNone, 1});
  EXPECT_EQ(vote_of(told), 0U);
  Receiver proven = seeded();
  proven.ask(Teardown{1, false});
  proven.connect(2);
  proven.attempt({2, 2, 1, UpdateMode::kDelta, FullReason::kNone, 1});
  EXPECT_EQ(vote_of(proven), 1U);
}

TEST(UpdateReceiver, WithDeltasOffNobodyVotes) {
  Receiver driver = seeded(false);
  driver.attempt({1, 2, 1, UpdateMode::kFull, FullReason::kNoDelta, 1});
  EXPECT_EQ(driver.log, (Labels{"reserve staging", "move dense 0", "move dense 1", "compute verify", "tell", "sum",
                                "compute apply", "compute fence", "barrier", "tell", "release staging", "reply"}));
}

TEST(UpdateReceiver, WhatDidNotArriveWholeIsNotApplied) {
  Receiver driver = seeded();
  driver.endings["sum"] = {.value = 1};
  driver.attempt(kSecond);
  EXPECT_EQ(driver.replies<Executed>().back().outcome, Outcome::kMismatch);
  EXPECT_TRUE(driver.only({"compute apply"}).empty());
  EXPECT_FALSE(driver.protocol().quarantined());
}

Labels stages() {
  Receiver driver = seeded();
  driver.attempt(kSecond);
  Labels labels = driver.log;
  std::erase(labels, "tell");
  std::erase(labels, "reply");
  return labels;
}

TEST(UpdateReceiver, AnEndAtAnyStageGivesEverythingBackAndSaysWhatIsUnproven) {
  EXPECT_EQ(stages().size(), 12U);
  for (const bool abort : {true, false}) {
    bool applied = false;
    for (const std::string& label : stages()) {
      Receiver driver = seeded();
      driver.held.insert(label);
      driver.attempt(kSecond);
      ASSERT_EQ(driver.still_open(), 1U) << label;
      if (abort) {
        driver.ask(AbortUpdate{1, 2, 1});
      } else {
        driver.ask(Teardown{1, false});
      }
      driver.release();
      applied = applied || label == "compute apply_delta";
      EXPECT_EQ(driver.protocol().quarantined(), applied) << label;
      EXPECT_TRUE(driver.broken.empty()) << label << ": " << driver.broken.front();
      EXPECT_EQ(driver.held_buffers(port::MemoryTag::kStaging), 0U) << label;
      EXPECT_EQ(driver.still_open(), 0U) << label;
      EXPECT_EQ(driver.replies<UpdateAborted>().size() + driver.replies<TornDown>().size(), 1U) << label;
      driver.connect(2);
      const Execute next{2, 2, 2, UpdateMode::kFull, FullReason::kPeerLost, 1};
      driver.attempt(next);
      driver.commit(next);
      EXPECT_FALSE(driver.protocol().quarantined()) << label;
      EXPECT_EQ(driver.protocol().member().version(), 2U) << label;
    }
  }
}

TEST(UpdateReceiver, ASavedReceiverGoesOnTheSameWay) {
  Receiver plain = seeded();
  plain.attempt(kSecond);
  for (const std::string& label : stages()) {
    Receiver driver = seeded();
    driver.held.insert(label);
    driver.attempt(kSecond);
    EXPECT_TRUE(driver.member.reload(UpdateReceiver(receiver_options(), true))) << label;
    driver.release();
    EXPECT_EQ(driver.only({"min", "move", "compute", "sum", "barrier", "reply"}),
              plain.only({"min", "move", "compute", "sum", "barrier", "reply"}))
        << label;
  }
}

}  // namespace
}  // namespace areal::test
