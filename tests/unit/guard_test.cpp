// The guard: ports stay leased until their holder is dead, and every child has one process and one port at a time.
#include "engine/proto/guard.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"

namespace areal::proto {
namespace {

using port::LeaseState;
using test::Driven;

constexpr NodeId kGateway{3};
constexpr NodeId kRouter{4};
constexpr NodeId kController{1};
constexpr NodeId kTrainer{10};
constexpr NodeId kHelper{30};

ClusterMap small_cluster() {
  ClusterMap cluster;
  cluster.trainers = {kTrainer};
  cluster.gateway = kGateway;
  cluster.router = kRouter;
  cluster.controller = kController;
  return cluster;
}

GuardOptions options_of(std::vector<NodeId> children) {
  GuardOptions options;
  options.host = {1};
  options.children = std::move(children);
  options.listeners = membership_listeners(small_cluster());
  options.max_restarts = 2;
  return options;
}

class GuardTest : public ::testing::Test {
 protected:
  void grant(std::uint16_t port, Outcome outcome = Outcome::kOk) {
    guard.feed(port::PortLeased{guard.effects<port::LeasePort>().at(0).op, outcome, port});
  }
  void run(Incarnation incarnation, Outcome outcome = Outcome::kOk) {
    const auto start = guard.effects<port::StartProcess>().at(0);
    guard.feed(port::ProcessStarted{start.op, start.node, incarnation, outcome});
  }
  void exit(Incarnation incarnation) {
    guard.feed(port::ProcessExited{kTrainer, incarnation, 1});
    for (const port::Send& send : guard.sends<WorkerExited>()) told.push_back(send);
  }
  // All members acknowledge the deaths that they were told of.
  void acknowledge() {
    for (const port::Send& send : std::exchange(told, {})) guard.answer(send, Ack{});
  }
  // The position of the first effect that is an E, or of its kind of note.
  template <class E>
  std::size_t place() {
    for (std::size_t i = 0; i < guard.all().size(); ++i) {
      if (std::holds_alternative<E>(guard.all()[i])) return i;
    }
    return SIZE_MAX;
  }
  Driven<Guard> guard{Guard(options_of({kTrainer}), small_cluster())};
  std::vector<port::Send> told;
};

TEST_F(GuardTest, AChildIsStartedWithALeasedPortAndAnnounced) {
  guard.start();
  grant(20'000);
  EXPECT_EQ(guard.notes<port::LeaseChanged>().at(0).state, LeaseState::kLeased);
  EXPECT_EQ(guard.effects<port::StartProcess>().at(0).port, 20'000);
  run(1);
  EXPECT_EQ(guard.notes<port::LeaseChanged>().at(0).state, LeaseState::kBound);
  EXPECT_TRUE(guard.notes<port::ProcessChanged>().at(0).alive);
  const auto news = guard.sends<WorkerStarted>();
  ASSERT_EQ(news.size(), 3U);
  EXPECT_EQ(news[0].to, kGateway);
  EXPECT_EQ(news[1].to, kRouter);
  EXPECT_EQ(news[2].to, kController);
  EXPECT_EQ(news[2].to_slot, kTrainLoopSlot);
  EXPECT_TRUE(guard.reload(Guard(options_of({kTrainer}), small_cluster())));
}

// A death is reported before its port can be had by anybody, and once; what comes next has a lease of its own.
TEST_F(GuardTest, APortIsGivenBackOnlyAfterADeathThatWasTold) {
  guard.start();
  grant(20'000);
  run(1);
  exit(1);
  EXPECT_FALSE(guard.notes<port::ProcessChanged>().at(0).alive);
  EXPECT_EQ(guard.sends<WorkerExited>().size(), 3U);
  EXPECT_EQ(guard.effects<port::ReleasePort>().at(0).port, 20'000);
  EXPECT_EQ(guard.notes<port::LeaseChanged>().at(0).state, LeaseState::kReleased);
  EXPECT_LT(place<port::Send>(), place<port::ReleasePort>());
  EXPECT_TRUE(guard.effects<port::LeasePort>().empty());
  const TimerId timer{kTrainer.value};
  exit(1);  // Told twice.
  EXPECT_TRUE(guard.effects<port::ReleasePort>().empty());
  EXPECT_EQ(guard.notes<port::Refused>().size(), 1U);
  acknowledge();
  guard.fire(timer);
  grant(20'001);
  run(2);
  EXPECT_EQ(guard.notes<port::ProcessChanged>().at(0).incarnation, 2U);
  exit(1);  // A late report of the first one.
  EXPECT_TRUE(guard.effects<port::ReleasePort>().empty());
}

// Two guards, one host: the one that finds its candidate taken asks again and gets another.
TEST_F(GuardTest, ALeaseThatFailsIsTriedAgain) {
  Driven<Guard> other{Guard(options_of({kTrainer}), small_cluster())};
  other.start();
  other.feed(port::PortLeased{other.effects<port::LeasePort>().at(0).op, Outcome::kOk, 20'000});
  guard.start();
  grant(0, Outcome::kFailed);
  EXPECT_TRUE(guard.effects<port::StartProcess>().empty());
  const auto armed = guard.effects<port::ArmTimer>();
  ASSERT_EQ(armed.size(), 1U);
  guard.fire(armed[0].timer);
  grant(20'001);
  EXPECT_EQ(guard.effects<port::StartProcess>().at(0).port, 20'001);
  EXPECT_EQ(other.protocol().children().find(kTrainer)->port, 20'000);
}

TEST_F(GuardTest, AStartThatFailsGivesItsPortBack) {
  guard.start();
  grant(20'000);
  run(0, Outcome::kFailed);
  EXPECT_EQ(guard.effects<port::ReleasePort>().size(), 1U);
  EXPECT_TRUE(guard.sends<WorkerStarted>().empty());
  EXPECT_EQ(guard.effects<port::ArmTimer>().size(), 1U);
}

// The death of a process may be told before its start; the start must not bring it back.
TEST_F(GuardTest, ADeathToldBeforeItsStartIsADeath) {
  guard.start();
  grant(20'000);
  const port::StartProcess start = guard.effects<port::StartProcess>().at(0);
  exit(1);
  EXPECT_EQ(guard.effects<port::ReleasePort>().at(0).port, 20'000);
  guard.feed(port::ProcessStarted{start.op, kTrainer, 1, Outcome::kOk});
  EXPECT_TRUE(guard.is_silent());
  acknowledge();
  guard.fire({kTrainer.value});
  EXPECT_EQ(guard.effects<port::LeasePort>().size(), 1U);
}

// A replacement that a router has not heard of would be sent work as if it were the one before.
TEST_F(GuardTest, AReplacementWaitsUntilEverybodyKnowsOfTheDeath) {
  guard.start();
  grant(20'000);
  run(1);
  exit(1);
  guard.answer(told.at(0), Ack{});
  guard.answer(told.at(1), Ack{});
  guard.fire({kTrainer.value});
  EXPECT_TRUE(guard.effects<port::LeasePort>().empty());
  EXPECT_EQ(guard.effects<port::ArmTimer>().size(), 1U);  // It looks again later.
  guard.answer(told.at(2), Ack{});
  guard.fire({kTrainer.value});
  EXPECT_EQ(guard.effects<port::LeasePort>().size(), 1U);
}

TEST_F(GuardTest, RestartsAreBoundedAndBackOff) {
  guard.start();
  std::vector<Duration> delays;
  for (Incarnation incarnation = 1; incarnation <= 3; ++incarnation) {
    grant(20'000);
    run(incarnation);
    exit(incarnation);
    for (const auto& armed : guard.effects<port::ArmTimer>()) {
      if (armed.timer == TimerId{kTrainer.value}) delays.push_back(armed.after);
    }
    acknowledge();
    guard.fire({kTrainer.value});
  }
  EXPECT_EQ(delays, (std::vector<Duration>{1_s, 2_s}));
  EXPECT_TRUE(guard.effects<port::LeasePort>().empty());
  EXPECT_EQ(guard.protocol().children().find(kTrainer)->phase, ChildPhase::kEnded);
}

TEST_F(GuardTest, OnlyEngineAndTrainingRanksAreAnnounced) {
  guard = Driven<Guard>(Guard(options_of({kHelper}), small_cluster()));
  guard.start();
  grant(20'000);
  run(1);
  EXPECT_TRUE(guard.effects<port::Send>().empty());
}

// A reply that is lost must not cost a second port, and a return may be repeated.
TEST_F(GuardTest, AReservationIsOnePerEpochUntilItIsReturned) {
  guard = Driven<Guard>(Guard(options_of({}), small_cluster()));
  guard.start();
  guard.request(kGateway, kGatewaySlot, 5, ReservePort{1});
  grant(21'000);
  EXPECT_EQ((guard.bodies<port::Send, PortReserved>().at(0).port), 21'000);
  guard.request(kGateway, kGatewaySlot, 6, ReservePort{1});
  EXPECT_EQ((guard.bodies<port::Send, PortReserved>().at(0).port), 21'000);
  EXPECT_TRUE(guard.effects<port::LeasePort>().empty());
  guard.request(kGateway, kGatewaySlot, 7, ReturnPort{1, 1});
  EXPECT_TRUE(guard.effects<port::ReleasePort>().empty());
  EXPECT_EQ(guard.notes<port::Refused>().size(), 1U);
  guard.request(kGateway, kGatewaySlot, 8, ReturnPort{1, 21'000});
  EXPECT_EQ(guard.effects<port::ReleasePort>().size(), 1U);
  guard.request(kGateway, kGatewaySlot, 9, ReturnPort{1, 21'000});
  EXPECT_TRUE(guard.effects<port::ReleasePort>().empty());
  EXPECT_EQ(guard.sends<Ack>().size(), 1U);
  guard.request(kGateway, kGatewaySlot, 4, ReservePort{1});  // It was asked before the return.
  EXPECT_TRUE(guard.effects<port::LeasePort>().empty());
  EXPECT_EQ((guard.bodies<port::Send, PortReserved>().at(0).outcome), Outcome::kRefused);
  guard.request(kGateway, kGatewaySlot, 10, ReservePort{1});
  EXPECT_EQ(guard.effects<port::LeasePort>().size(), 1U);
}

TEST_F(GuardTest, AReturnWhileTheLeaseIsUnderWayLeaksNothing) {
  guard = Driven<Guard>(Guard(options_of({}), small_cluster()));
  guard.start();
  guard.request(kGateway, kGatewaySlot, 5, ReservePort{1});
  const OpId op = guard.effects<port::LeasePort>().at(0).op;
  guard.request(kGateway, kGatewaySlot, 6, ReturnPort{1, 0});
  guard.feed(port::PortLeased{op, Outcome::kOk, 21'000});
  EXPECT_EQ(guard.effects<port::ReleasePort>().at(0).port, 21'000);
}

// The gateway and the controller both count their epochs from 1, and their requests too.
TEST_F(GuardTest, EpochsOfDifferentAskersAreDifferentReservations) {
  guard = Driven<Guard>(Guard(options_of({}), small_cluster()));
  guard.start();
  guard.request(kGateway, kGatewaySlot, 5, ReservePort{1});
  grant(21'000);
  guard.request(kController, kTrainLoopSlot, 5, ReservePort{1});
  grant(22'000);
  EXPECT_EQ((guard.bodies<port::Send, PortReserved>().at(0).port), 22'000);
  guard.request(kGateway, kGatewaySlot, 7, ReturnPort{1, 21'000});
  EXPECT_EQ(guard.effects<port::ReleasePort>().at(0).port, 21'000);
  guard.request(kController, kTrainLoopSlot, 6, ReservePort{1});
  EXPECT_EQ((guard.bodies<port::Send, PortReserved>().at(0).port), 22'000);
  guard.request(kController, kTrainLoopSlot, 8, ReturnPort{1, 22'000});
  EXPECT_EQ(guard.effects<port::ReleasePort>().at(0).port, 22'000);
  EXPECT_TRUE(guard.protocol().reservations().empty());
  EXPECT_TRUE(guard.reload(Guard(options_of({}), small_cluster())));
}

TEST_F(GuardTest, OnlyTheGatewayAndTheControllerMayReserve) {
  guard.start();
  guard.request(kRouter, kRouterSlot, 5, ReservePort{1});
  EXPECT_TRUE(guard.effects<port::LeasePort>().empty());
  EXPECT_EQ(guard.notes<port::Refused>().size(), 1U);
}

// A listener that was away for long still learns what is true now, and not what no longer is.
TEST_F(GuardTest, NewsIsToldUntilItIsKnownOrNoLongerTrue) {
  GuardOptions options = options_of({kTrainer});
  options.calls.tries = 1;
  guard = Driven<Guard>(Guard(options, small_cluster()));
  guard.start();
  grant(20'000);
  run(1);
  const port::Send first = guard.sends<WorkerStarted>().at(0);
  guard.fire({(1ULL << 32) + (first.request.value & 0xFFFFFFFF)});
  ASSERT_EQ(guard.sends<WorkerStarted>().size(), 1U);
  EXPECT_NE(guard.sends<WorkerStarted>()[0].request, first.request);
  const port::Send second = guard.sends<WorkerStarted>()[0];
  exit(1);
  guard.fire({(1ULL << 32) + (second.request.value & 0xFFFFFFFF)});
  EXPECT_TRUE(guard.sends<WorkerStarted>().empty());
}

}  // namespace
}  // namespace areal::proto
