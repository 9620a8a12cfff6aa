// Pause is all or nothing: the update may begin only when every engine stands still.
#include "engine/proto/pause_gate.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)

constexpr TimerId kPauseTimer{1};
constexpr TimerId kGraceTimer{2};

PauseGateOptions short_options() {
  PauseGateOptions options;
  options.calls.tries = 2;
  return options;
}

class PauseGateTest : public testing::Test {
 protected:
  PauseGateTest() { gate.start(); }

  std::vector<port::Send> pause() {
    gate.tell(kTrainLoopSlot, PauseAll{});
    return gate.sends<PauseEngine>();
  }
  std::vector<port::Send> resume() {
    gate.tell(kTrainLoopSlot, ContinueAll{});
    return gate.sends<ContinueEngine>();
  }
  void pause_well() {
    for (const port::Send& send : pause()) gate.answer(send, EnginePaused{});
  }
  std::vector<Outcome> paused() const {
    std::vector<Outcome> out;
    for (const AllPaused& said : gate.tells<AllPaused>()) out.push_back(said.outcome);
    return out;
  }

  Driven<PauseGate> gate{PauseGate(short_options(), rollout_cluster(2))};
};

using Outcomes = std::vector<Outcome>;

TEST_F(PauseGateTest, IsPausedWhenTheLastEngineIs) {
  const auto sends = pause();
  ASSERT_EQ(sends.size(), 2U);
  EXPECT_EQ(sends[0].to, server_node(0));
  EXPECT_EQ(sends[0].to_slot, kServerSlot);
  gate.answer(sends[1], EnginePaused{});
  EXPECT_TRUE(paused().empty());
  gate.answer(sends[0], EnginePaused{});
  EXPECT_EQ(paused(), Outcomes{Outcome::kOk});
}

// TC-FI-09, TC-RP-10, GAP-16: the update would begin beside an engine that still generates.
TEST_F(PauseGateTest, OneRefusalUndoesThePauseOfTheOther) {
  const auto sends = pause();
  gate.answer(sends[0], EnginePaused{});
  gate.answer(sends[1], EnginePaused{Outcome::kRefused, 0});
  const auto undo = gate.sends<ContinueEngine>();
  ASSERT_EQ(undo.size(), 1U);
  EXPECT_EQ(undo[0].to, server_node(0));
  EXPECT_TRUE(paused().empty());
  gate.answer(undo[0], EngineContinued{});
  EXPECT_EQ(paused(), Outcomes{Outcome::kRefused});
  EXPECT_EQ(gate.protocol().phase(), GatePhase::kRunning);
}

TEST_F(PauseGateTest, ASilentEngineEndsThePauseInTimeAndIsContinuedToo) {
  gate.answer(pause()[0], EnginePaused{});
  gate.fire(kPauseTimer);
  const auto undo = gate.sends<ContinueEngine>();
  ASSERT_EQ(undo.size(), 2U);
  gate.answer(undo[0], EngineContinued{});
  EXPECT_TRUE(paused().empty());
  gate.answer(undo[1], EngineContinued{});
  EXPECT_EQ(paused(), Outcomes{Outcome::kTimedOut});
}

TEST_F(PauseGateTest, AVerdictThatIsContentWithOneIsAnotherPolicy) {
  PauseGate tolerant(short_options(), rollout_cluster(2), [](const PauseCount& count) { return count.paused > 0; });
  Driven<PauseGate> driven(std::move(tolerant));
  driven.start();
  driven.tell(kTrainLoopSlot, PauseAll{});
  const auto sends = driven.sends<PauseEngine>();
  driven.answer(sends[0], EnginePaused{});
  driven.answer(sends[1], EnginePaused{Outcome::kRefused, 0});
  ASSERT_EQ(driven.tells<AllPaused>().size(), 1U);
  EXPECT_EQ(driven.tells<AllPaused>()[0].outcome, Outcome::kOk);
}

TEST_F(PauseGateTest, GraceComesAfterTheLastEngine) {
  PauseGateOptions options = short_options();
  options.grace = 30_s;
  Driven<PauseGate> driven(PauseGate(options, rollout_cluster(1)));
  driven.start();
  driven.tell(kTrainLoopSlot, PauseAll{});
  driven.answer(driven.sends<PauseEngine>()[0], EnginePaused{});
  EXPECT_TRUE(driven.tells<AllPaused>().empty());
  driven.fire(kGraceTimer);
  EXPECT_EQ(driven.tells<AllPaused>().size(), 1U);
}

TEST_F(PauseGateTest, ContinueReachesEveryEngine) {  // TC-RP-06
  pause_well();
  const auto sends = resume();
  ASSERT_EQ(sends.size(), 2U);
  gate.answer(sends[0], EngineContinued{});
  EXPECT_TRUE(gate.tells<AllContinued>().empty());
  gate.answer(sends[1], EngineContinued{});
  EXPECT_EQ(gate.tells<AllContinued>().at(0).outcome, Outcome::kOk);
}

TEST_F(PauseGateTest, AContinueThatIsNeverAnsweredIsGivenUpAndSaid) {
  pause_well();
  const auto sends = resume();
  const TimerId timer = gate.effects<port::ArmTimer>().at(1).timer;
  gate.answer(sends[0], EngineContinued{});
  gate.fire(timer);
  EXPECT_EQ(gate.sends<ContinueEngine>().size(), 1U);
  gate.fire(timer);
  EXPECT_EQ(gate.tells<AllContinued>().at(0).outcome, Outcome::kTimedOut);
}

TEST_F(PauseGateTest, AContinueDuringAPauseEndsIt) {
  pause();
  const auto sends = resume();
  EXPECT_EQ(paused(), Outcomes{Outcome::kAborted});
  ASSERT_EQ(sends.size(), 2U);
  for (const port::Send& send : sends) gate.answer(send, EngineContinued{});
  EXPECT_EQ(gate.tells<AllContinued>().size(), 1U);
}

TEST_F(PauseGateTest, APauseDuringAContinueFollowsIt) {
  pause_well();
  const auto sends = resume();
  EXPECT_TRUE(pause().empty());
  for (const port::Send& send : sends) gate.answer(send, EngineContinued{});
  EXPECT_EQ(gate.tells<AllContinued>().size(), 1U);
  EXPECT_EQ(gate.sends<PauseEngine>().size(), 2U);
}

TEST_F(PauseGateTest, LateAndDoubledAnswersChangeNothing) {
  const auto sends = pause();
  gate.answer(sends[0], EnginePaused{});
  gate.answer(sends[0], EnginePaused{});
  EXPECT_TRUE(gate.is_silent());
  gate.answer(sends[1], EnginePaused{});
  resume();
  gate.answer(sends[1], EnginePaused{});
  EXPECT_TRUE(gate.is_silent());
  EXPECT_EQ(gate.protocol().phase(), GatePhase::kContinuing);
}

// Engines that an earlier controller paused would stay so for ever.
TEST_F(PauseGateTest, AGateThatBeganAgainContinuesEverybody) {
  gate = Driven<PauseGate>(PauseGate(short_options(), rollout_cluster(2)));
  gate.start(2);
  const auto sends = gate.sends<ContinueEngine>();
  ASSERT_EQ(sends.size(), 2U);
  for (const port::Send& send : sends) gate.answer(send, EngineContinued{});
  EXPECT_TRUE(gate.tells<AllContinued>().empty());
  EXPECT_EQ(gate.protocol().phase(), GatePhase::kRunning);
}

TEST_F(PauseGateTest, ItsStateIsAllThereIs) {
  const auto sends = pause();
  gate.answer(sends[1], EnginePaused{});
  EXPECT_TRUE(gate.reload(PauseGate(short_options(), rollout_cluster(2))));
  gate.answer(sends[0], EnginePaused{});
  EXPECT_EQ(paused(), Outcomes{Outcome::kOk});
}

TEST_F(PauseGateTest, SaysWhomItWaitsFor) {
  const auto sends = pause();
  gate.answer(sends[0], EnginePaused{});
  WaitList waits;
  gate.protocol().list_waits(waits);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].on, server_node(1));
}

}  // namespace
}  // namespace areal::test
