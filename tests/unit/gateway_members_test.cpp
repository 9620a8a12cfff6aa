// Who the gateway says is a member, and how it has engines repaired that lost the published version.
#include "tests/unit/gateway_fixture.h"

namespace areal::test {
namespace {

class GatewayMembersTest : public GatewayFixture {
 protected:
  GatewayMembersTest() : GatewayFixture(false) {}
  static constexpr std::uint32_t kReplaced = 3;  // The second rank of engine 1, by transfer rank.
};

TEST_F(GatewayMembersTest, EveryEngineIsAMemberOfVersionZeroAfterEveryConnect) {
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].engine, EngineId{0});
  EXPECT_EQ(members[1].engine, EngineId{1});
  EXPECT_EQ(members[1].version, 0U);
  EXPECT_EQ(members[1].incarnations, 2U);
  replace(kReplaced);
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
  replace(kReplaced);
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
  replace(kReplaced);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].version, 1U);
  members.clear(), replies.clear();
  EXPECT_TRUE(gateway.reload(make_gateway(false)));
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
  replace(kReplaced);
  executed = [](std::uint32_t, Executed& said) {
    said.outcome = Outcome::kMismatch;
  };  // The trainers hold other weights.
  replies.clear();
  ask(UpdateRequest{1});
  EXPECT_EQ(replies.at(0).outcome, Outcome::kFailed);
  ASSERT_EQ(attempts.size(), 1U + GatewayOptions{}.max_attempts);
  for (std::size_t i = 0; i < attempts.size(); ++i) EXPECT_EQ(attempts[i].attempt, i + 1);
}

TEST_F(GatewayMembersTest, NothingIsAskedOfTheLoopWhileItsUpdateIsPending) {
  ask(UpdateRequest{1});
  exited(kReplaced);
  ask(UpdateRequest{2});
  ++incarnations[kReplaced];
  started(kReplaced);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(published.size(), 2U);
}

// Mixed weights pass for no version.
TEST_F(GatewayMembersTest, NobodyIsAMemberOfVersionZeroOnceSomethingMayHaveBeenWritten) {
  members.clear();
  executed = [](std::uint32_t, Executed& said) { said.outcome = Outcome::kFailed; };
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
