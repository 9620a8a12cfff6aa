// Who gets requests: engines in declared order, and only those that hold the published version.
#include "engine/proto/router.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)

class RouterTest : public testing::Test {
 protected:
  void announce(Version version) { router.request(kController, kTrainLoopSlot, ++last, SetVersion{version}); }
  void prove(std::uint64_t engine, Version version, std::uint64_t proven) {
    router.request(kGateway, kGatewaySlot, ++last, EngineMember{EngineId{engine}, version, proven});
  }
  // Every rank of every engine, in the incarnation that the guard last spoke of, holds the version.
  void publish(Version version) {
    for (std::uint64_t engine = 0; engine < 3; ++engine) prove(engine, version, incarnations[engine]);
    announce(version);
  }
  void exit(NodeId node, Incarnation incarnation) {
    router.request(kGuard, kGuardSlot, ++last, WorkerExited{node, incarnation});
  }
  void start(NodeId node, Incarnation incarnation) {
    if (incarnation > 1) ++incarnations[(node.value - 100) / 10];
    router.request(kGuard, kGuardSlot, ++last, WorkerStarted{node, incarnation, 0});
  }
  RouteReply route() { return route_as(++last); }
  RouteReply route_as(std::uint64_t request) {
    router.request(kController, kPoolSlot, request, RouteRequest{SampleId{request}});
    return router.bodies<port::Send, RouteReply>().at(0);
  }
  std::vector<std::uint64_t> engines(int picks) {
    std::vector<std::uint64_t> out;
    for (; picks > 0; --picks) out.push_back(route().engine.value);
    return out;
  }

  Driven<Router> router{Router(rollout_cluster(3))};
  std::uint64_t last = 0;
  std::array<std::uint64_t, 3> incarnations{2, 2, 2};  // By engine.
};

using Picks = std::vector<std::uint64_t>;

TEST_F(RouterTest, NobodyIsEligibleBeforeAVersionWasPublished) {
  EXPECT_EQ(route().outcome, Outcome::kRefused);
  EXPECT_TRUE(router.notes<port::Routed>().empty());
}

TEST_F(RouterTest, RoundRobinIsInDeclaredOrderWhateverOrderEnginesStartedIn) {  // TC-RP-05
  for (const std::uint64_t engine : {2, 0, 1}) start(server_node(engine), 1);
  publish(0);
  EXPECT_EQ(engines(6), (Picks{0, 1, 2, 0, 1, 2}));
}

TEST_F(RouterTest, TheReplyPinsThePublishedVersionAndNeverFallsBack) {
  publish(0);
  publish(7);
  EXPECT_EQ(route().version, 7U);
  publish(3);
  EXPECT_EQ(router.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
  EXPECT_EQ(router.sends<Ack>().size(), 1U);
  EXPECT_EQ(route().version, 7U);
}

// Another history begins lower; words of the one before come too late.
TEST_F(RouterTest, ALaterTrainingEpochMayAnnounceALowerVersion) {
  publish(7);
  router.request(kController, kTrainLoopSlot, ++last, SetVersion{5, 2});
  EXPECT_TRUE(router.notes<port::Refused>().empty());
  EXPECT_EQ(route().version, 5U);
  announce(8);
  EXPECT_EQ(router.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
  EXPECT_EQ(route().version, 5U);
  router.request(kGateway, kGatewaySlot, ++last, EngineMember{EngineId{0}, 5, 2, 2});
  EXPECT_TRUE(router.notes<port::Refused>().empty());
  prove(0, 9, 2);
  EXPECT_EQ(router.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
}

// A process that was replaced after it committed must not pass for the one that did.
TEST_F(RouterTest, AnAnnouncementProvesNobody) {
  start(server_node(1), 1);
  for (const std::uint64_t engine : {0, 1, 2}) prove(engine, 1, 2);
  exit(server_node(1), 1);
  start(server_node(1), 2);
  announce(1);
  EXPECT_EQ(engines(4), (Picks{0, 2, 0, 2}));
  prove(1, 1, 3);  // It was part of a repair.
  EXPECT_EQ(router.sends<Ack>().size(), 1U);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{1}));
}

TEST_F(RouterTest, AProofOfAnOlderVersionOrOfAnOlderProcessIsNone) {
  start(server_node(0), 1);
  start(server_node(0), 2);
  publish(1);
  prove(0, 0, 9);
  EXPECT_EQ(router.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
  prove(1, 2, 2);
  prove(2, 2, 2);
  prove(0, 2, 2);  // Said before the gateway knew of the second start.
  announce(2);
  EXPECT_FALSE(router.protocol().is_eligible(EngineId{0}));
  EXPECT_EQ(engines(2), (Picks{1, 2}));
}

TEST_F(RouterTest, NewsOfAStartThatTheProofKnewOfChangesNothing) {
  start(server_node(0), 1);
  prove(0, 1, 3);
  announce(1);
  start(rank_node(0, 1), 2);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{0}));
}

// H06: a replacement would get traffic before it was part of an update.
TEST_F(RouterTest, AReplacementStaysOutUntilTheNextPublication) {
  publish(2);
  exit(rank_node(1, 1), 1);
  const auto changed = router.notes<port::EligibleChanged>();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].engine.value, 1U);
  EXPECT_FALSE(changed[0].eligible);
  start(rank_node(1, 1), 2);
  EXPECT_TRUE(router.notes<port::EligibleChanged>().empty());
  EXPECT_EQ(engines(4), (Picks{0, 2, 0, 2}));
  publish(3);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{1}));
}

TEST_F(RouterTest, AnEngineThatIsDeadAtPublicationWaitsForTheNext) {
  publish(1);
  exit(server_node(0), 1);
  publish(2);
  start(server_node(0), 2);
  EXPECT_FALSE(router.protocol().is_eligible(EngineId{0}));
  publish(3);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{0}));
}

TEST_F(RouterTest, ALaterStartImpliesTheExitThatWasNotHeardOf) {
  start(server_node(0), 1);
  publish(0);
  start(server_node(0), 2);
  EXPECT_FALSE(router.protocol().is_eligible(EngineId{0}));
}

TEST_F(RouterTest, TheFirstStartAfterPublicationIsNoRestart) {
  publish(0);
  start(server_node(0), 1);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{0}));
}

TEST_F(RouterTest, LateNewsOfAnOlderProcessChangesNothing) {
  start(server_node(0), 1);
  start(server_node(0), 2);
  publish(1);
  exit(server_node(0), 1);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{0}));
  exit(server_node(0), 2);
  start(server_node(0), 2);  // Overtaken by its own exit.
  publish(2);
  EXPECT_FALSE(router.protocol().is_eligible(EngineId{0}));
}

TEST_F(RouterTest, ARepeatedRequestIsAnsweredAgainWithTheSameEngine) {
  publish(0);
  const RouteReply first = route_as(500);
  engines(1);
  EXPECT_EQ(route_as(500).engine, first.engine);
  EXPECT_TRUE(router.notes<port::Routed>().empty());
}

// It warns before it tells the other ranks of that engine to refuse, and does not go on before the answer.
TEST_F(RouterTest, TheGatewayMayReportADeathToo) {
  publish(1);
  router.request(kGateway, kGatewaySlot, ++last, WorkerExited{server_node(1), 1});
  EXPECT_TRUE(router.notes<port::Refused>().empty());
  EXPECT_EQ(router.sends<Ack>().size(), 1U);
  EXPECT_EQ(engines(2), (Picks{0, 2}));
}

TEST_F(RouterTest, StrangersPublishNothingAndKillNobody) {
  publish(0);
  router.request(kStranger, kTrainLoopSlot, 1, SetVersion{9});
  EXPECT_EQ(router.notes<port::Refused>().size(), 1U);
  router.request(kStranger, kGuardSlot, 2, WorkerExited{server_node(0), 1});
  EXPECT_EQ(router.notes<port::Refused>().size(), 1U);
  EXPECT_TRUE(router.protocol().is_eligible(EngineId{0}));
  router.request(kGuard, kGuardSlot, ++last, EngineMember{EngineId{0}, 5, 2});  // A guard proves nothing.
  EXPECT_EQ(router.notes<port::Refused>().size(), 1U);
  prove(7, 0, 2);
  EXPECT_EQ(router.notes<port::Refused>().size(), 1U);
  EXPECT_EQ(route().version, 0U);
}

TEST_F(RouterTest, ItsStateIsAllThereIs) {
  publish(1);
  exit(server_node(2), 1);
  engines(2);
  EXPECT_TRUE(router.reload(Router(rollout_cluster(3))));
  EXPECT_EQ(engines(2), (Picks{0, 1}));
}

}  // namespace
}  // namespace areal::test
