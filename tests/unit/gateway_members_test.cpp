// Who the gateway says is a member, and how it has engines repaired that lost the published version.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "engine/proto/gateway.h"
#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)

constexpr std::uint32_t kEngines = 2;
constexpr std::uint32_t kWorld = 6;

Gateway make_gateway() {
  GatewayOptions options;
  options.plans = std::make_shared<const std::vector<MemberPlan>>(kWorld);
  return Gateway(std::move(options), rollout_cluster(kEngines));
}

// Answers whatever the gateway asks, except for requests of the kind that is held back.
class GatewayMembersTest : public testing::Test {
 protected:
  void SetUp() override {
    gateway.start();
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) started(map.node_of_transfer_rank(rank), 1);
    ask(ConnectRequest{});
  }

  template <RecordType T>
  void ask(const T& body, NodeId from = kController) {
    gateway.request(from, kTrainLoopSlot, ++last, body);
    gather();
    pump();
  }
  void started(NodeId node, Incarnation incarnation) { ask(WorkerStarted{node, incarnation, 0}, kGuard); }
  void exited(NodeId node, Incarnation incarnation) { ask(WorkerExited{node, incarnation}, kGuard); }

  void gather() {
    for (const port::Send& send : gateway.effects<port::Send>()) {
      if (send.kind == port::MessageKind::kReply) {
        dispatch_record<UpdateReply>(send.body, [&](const UpdateReply& reply) { replies.push_back(reply); });
        continue;
      }
      open.push_back(send);
      dispatch_record<EngineMember>(send.body, [&](const EngineMember& said) { members.push_back(said); });
      dispatch_record<EnginesLost>(send.body, [&](const EnginesLost& said) { lost.push_back(said); });
    }
    for (const auto& note : gateway.notes<port::VersionPublished>()) published.push_back(note);
    for (const auto& note : gateway.notes<port::UpdateStarted>()) attempts.push_back(note);
    for (const port::StorePut& put : gateway.effects<port::StorePut>()) puts.push_back(put);
  }
  void pump() {
    while (true) {
      const auto next = std::ranges::find_if(open, [&](const port::Send& send) { return send.body.kind != held; });
      if (next != open.end()) {
        const port::Send send = *next;
        open.erase(next);
        answer(send);
      } else if (!puts.empty()) {
        gateway.feed(port::StoreDone{puts.front().op, Outcome::kOk, {}});
        puts.pop_front();
      } else {
        return;
      }
      gather();
    }
  }
  void release() {
    held = 0;
    pump();
  }
  void answer(const port::Send& send) {
    const Record& body = send.body;
    const auto reply = [&](const auto& said) {
      const Incarnation incarnation = send.to == rank_node(1, 1) ? replaced : 1;
      gateway.feed(port::MessageIn{send.to, incarnation, send.to_slot, port::MessageKind::kReply, send.request,
                                   to_record(said)});
    };
    dispatch_record<ReportMeta>(body, [&](const auto&) { reply(report_of(send.to)); });
    dispatch_record<InitGroups>(body, [&](const auto& b) { reply(InitDone{b.epoch, Outcome::kOk, {}}); });
    dispatch_record<ReservePort>(body, [&](const auto& b) { reply(PortReserved{b.epoch, Outcome::kOk, 4000}); });
    dispatch_record<Prepare>(body, [&](const auto& b) {
      reply(Prepared{b.epoch, b.version, b.attempt, Outcome::kOk, b.base, 0, 0, DType::kBf16, 0});
    });
    dispatch_record<Execute>(body,
                             [&](const auto& b) { reply(Executed{b.epoch, b.version, b.attempt, execute, {}, 0}); });
    dispatch_record<Commit>(body,
                            [&](const auto& b) { reply(Committed{b.epoch, b.version, b.attempt, Outcome::kOk}); });
    dispatch_record<AbortUpdate>(body, [&](const auto& b) { reply(UpdateAborted{b.epoch, false}); });
    dispatch_record<Teardown>(body, [&](const auto& b) { reply(TornDown{b.epoch}); });
    dispatch_record<ReturnPort, EngineMember, EnginesLost, WorkerExited>(body, [&](const auto&) { reply(Ack{}); });
  }
  MetaReport report_of(NodeId node) const {
    for (std::uint32_t rank = 0; rank < map.infer_world(); ++rank) {
      if (map.engine_ranks[rank] == node) return {Role::kEngine, rank % 2, EngineId{rank / 2}, 2, 0, 0, {}};
    }
    return {Role::kTrainer, node == map.trainers[0] ? 0U : 1U, {}, 2, 0, 0, {}};
  }
  // A rank of engine 1 dies and is replaced.
  void replace() {
    exited(rank_node(1, 1), replaced);
    started(rank_node(1, 1), ++replaced);
  }

  const ClusterMap map = rollout_cluster(kEngines);
  Driven<Gateway> gateway{make_gateway()};
  std::uint64_t last = 0;
  Incarnation replaced = 1;  // Of that rank.
  KindId held = 0;
  Outcome execute = Outcome::kOk;
  std::deque<port::Send> open;
  std::deque<port::StorePut> puts;
  std::vector<EngineMember> members;
  std::vector<EnginesLost> lost;
  std::vector<UpdateReply> replies;
  std::vector<port::VersionPublished> published;
  std::vector<port::UpdateStarted> attempts;
};

TEST_F(GatewayMembersTest, EveryEngineIsAMemberOfVersionZeroAfterEveryConnect) {
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].engine, EngineId{0});
  EXPECT_EQ(members[1].engine, EngineId{1});
  EXPECT_EQ(members[1].version, 0U);
  EXPECT_EQ(members[1].incarnations, 2U);
  replace();
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[2].incarnations, 2U);
  EXPECT_EQ(members[3].incarnations, 3U);
  EXPECT_TRUE(lost.empty());
}

TEST_F(GatewayMembersTest, TheRouterKnowsTheMembersBeforeAnybodyKnowsTheVersion) {
  held = EngineMember::kKind;
  ask(UpdateRequest{1});
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[2].version, 1U);
  EXPECT_TRUE(published.empty());
  EXPECT_TRUE(replies.empty());
  release();
  EXPECT_EQ(published.size(), 1U);
  EXPECT_EQ(replies.at(0).outcome, Outcome::kOk);
}

// The commit by all stands; the engine is torn down and repaired afterwards.
TEST_F(GatewayMembersTest, AMemberLostWhileTheRouterIsToldIsLostFromTheNewVersion) {
  held = EngineMember::kKind;
  ask(UpdateRequest{1});
  replace();
  release();
  ASSERT_EQ(published.size(), 1U);
  EXPECT_EQ(replies.at(0).outcome, Outcome::kOk);
  EXPECT_EQ(gateway.protocol().epoch(), 2U);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].version, 1U);
}

TEST_F(GatewayMembersTest, ASilentRouterStopsNoUpdate) {
  held = EngineMember::kKind;
  ask(UpdateRequest{1});
  for (const port::Send& send : open) {
    for (std::uint32_t tries = 0; tries < CallerOptions{}.tries; ++tries) {
      gateway.fire({CallerOptions{}.timer_base + (send.request.value & 0xFFFFFFFF)});
      for (const auto& note : gateway.notes<port::VersionPublished>()) published.push_back(note);
    }
  }
  EXPECT_EQ(published.size(), 1U);
}

TEST_F(GatewayMembersTest, ALostEngineIsRepairedWithAnotherAttemptOfTheSameVersion) {
  ask(UpdateRequest{1});
  replace();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].version, 1U);
  members.clear(), replies.clear();
  EXPECT_TRUE(gateway.reload(make_gateway()));
  ask(UpdateRequest{1});
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[1].version, 1U);
  EXPECT_EQ(attempts[1].attempt, 2U);
  EXPECT_EQ(attempts[1].reason, FullReason::kPeerLost);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].version, 1U);
  EXPECT_EQ(members[1].incarnations, 3U);
  EXPECT_EQ(replies.at(0).outcome, Outcome::kOk);
  EXPECT_EQ(published.size(), 1U);  // The first time.
  ask(UpdateRequest{1});            // Nothing is lost any more.
  EXPECT_EQ(attempts.size(), 2U);
  EXPECT_EQ(replies.at(1).outcome, Outcome::kOk);
  ask(UpdateRequest{2});
  EXPECT_EQ(attempts.at(2).attempt, 1U);
  EXPECT_EQ(published.size(), 2U);
}

TEST_F(GatewayMembersTest, ARepairThatFailsIsTriedAgainAndThenAnsweredSo) {
  ask(UpdateRequest{1});
  replace();
  execute = Outcome::kMismatch;  // The trainers hold other weights.
  replies.clear();
  ask(UpdateRequest{1});
  EXPECT_EQ(replies.at(0).outcome, Outcome::kFailed);
  ASSERT_EQ(attempts.size(), 1U + GatewayOptions{}.max_attempts);
  for (std::size_t i = 0; i < attempts.size(); ++i) EXPECT_EQ(attempts[i].attempt, i + 1);
}

TEST_F(GatewayMembersTest, NothingIsAskedOfTheLoopWhileItsUpdateIsPending) {
  ask(UpdateRequest{1});
  exited(rank_node(1, 1), 1);
  ask(UpdateRequest{2});
  started(rank_node(1, 1), ++replaced);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(published.size(), 2U);
}

// Mixed weights pass for no version.
TEST_F(GatewayMembersTest, NobodyIsAMemberOfVersionZeroOnceSomethingMayHaveBeenWritten) {
  members.clear();
  execute = Outcome::kFailed;
  ask(UpdateRequest{1});
  EXPECT_EQ(replies.at(0).outcome, Outcome::kFailed);
  // All that the router hears is that nobody is a member any more.
  ASSERT_FALSE(members.empty());
  for (const EngineMember& member : members) EXPECT_EQ(member.incarnations, 0U);
}

TEST_F(GatewayMembersTest, AVersionThatIsNotTheNextIsStillRefused) {
  ask(UpdateRequest{0});
  ask(UpdateRequest{2});
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].outcome, Outcome::kRefused);
  EXPECT_EQ(replies[1].outcome, Outcome::kRefused);
  EXPECT_TRUE(attempts.empty());
}

}  // namespace
}  // namespace areal::test
