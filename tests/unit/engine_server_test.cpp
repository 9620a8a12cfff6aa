// One engine's server: what it serves, with which version, and what pauses and writes do to it.
#include "engine/proto/engine_server.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)

constexpr WriterClaim look_then_take(const LockView& view) { return {false, !view.paused, true}; }

EngineServer make_server(LockPolicy lock = claim_at_once) {
  EngineServerOptions options;
  options.requests = 8;
  options.reports.tries = 2;
  return EngineServer(options, rollout_cluster(2), lock);
}

class EngineServerTest : public testing::Test {
 protected:
  EngineServerTest() { begin(); }

  void begin(LockPolicy lock = claim_at_once) {
    server = Driven<EngineServer>(make_server(lock));
    server.start();
    server.tell(kReceiverSlot, WeightsCommitted{3});
  }
  // The operation that decodes it; 0 if it was not begun.
  OpId generate(std::uint64_t sample, Version pinned = 3, std::uint64_t budget = 100) {
    server.request(kController, kPoolSlot, ++last, GenerateRequest{SampleId{sample}, pinned, 0, budget});
    const auto starts = server.effects<port::StartCompute>();
    return starts.empty() ? OpId{} : starts[0].op;
  }
  void end(OpId op, Outcome outcome, std::uint64_t tokens) { done(op, outcome, tokens, 0); }
  void close(OpId op, std::uint64_t tokens) { done(op, Outcome::kOk, tokens, 1); }
  void pause(PauseMode mode) { server.request(kController, kPauseGateSlot, ++last, PauseEngine{mode}); }
  void resume() { server.request(kController, kPauseGateSlot, ++last, ContinueEngine{}); }
  std::vector<GenerateReply> replies() const { return server.bodies<port::Send, GenerateReply>(); }
  std::vector<bool> freezes() const {
    std::vector<bool> out;
    for (const port::FreezeCompute& freeze : server.effects<port::FreezeCompute>()) out.push_back(freeze.frozen);
    return out;
  }
  bool granted() const { return !server.tells<WriteGranted>().empty(); }
  bool was_paused() const { return !server.bodies<port::Send, EnginePaused>().empty(); }

  Driven<EngineServer> server{make_server()};
  std::uint64_t last = 0;

 private:
  void done(OpId op, Outcome outcome, std::uint64_t tokens, std::uint64_t more) {
    server.feed(port::ComputeDone{op, port::ComputeKind::kGenerate, outcome, 0, tokens, more, Digest128{7, op.value}});
  }
};

// ---- Serving ----

TEST_F(EngineServerTest, TheReplyBearsTheVersionAndDigestThatServedIt) {
  const OpId op = generate(1, 2);
  ASSERT_NE(op, OpId{});
  end(op, Outcome::kOk, 40);
  ASSERT_EQ(replies().size(), 1U);
  EXPECT_EQ(replies()[0].version, 3U);
  EXPECT_EQ(replies()[0].end, SegmentEnd::kStop);
  EXPECT_EQ(replies()[0].tokens, 40U);
  EXPECT_EQ(replies()[0].digest, (Digest128{7, op.value}));
  const auto decoded = server.notes<port::Decoded>();
  ASSERT_EQ(decoded.size(), 1U);
  EXPECT_EQ(decoded[0].version, 3U);
}

TEST_F(EngineServerTest, TheWholeBudgetIsALengthEnd) {
  end(generate(1, 3, 100), Outcome::kOk, 100);
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kLength);
}

TEST_F(EngineServerTest, WhileItLoadsNothingIsServed) {
  server = Driven<EngineServer>(make_server());
  server.start();
  EXPECT_EQ(generate(1, 0), OpId{});
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kFailed);
  EXPECT_EQ(server.notes<port::Refused>().at(0).reason, Refusal::kNotInitialized);
}

// H06: a replacement would serve version 0 where version 4 is published.
TEST_F(EngineServerTest, OlderWeightsThanThePinnedOnesAreRefused) {
  EXPECT_EQ(generate(1, 4), OpId{});
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kFailed);
  EXPECT_EQ(server.notes<port::Refused>().at(0).reason, Refusal::kUnsynced);
}

TEST_F(EngineServerTest, AFailedDecodeBringsNoTokens) {
  end(generate(1), Outcome::kFailed, 5);
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kFailed);
  EXPECT_EQ(replies()[0].tokens, 0U);
}

TEST_F(EngineServerTest, ARepeatedRequestIsDecodedOnce) {
  server.request(kController, kPoolSlot, 50, GenerateRequest{SampleId{1}, 3, 0, 10});
  const OpId op = server.effects<port::StartCompute>().at(0).op;
  server.request(kController, kPoolSlot, 50, GenerateRequest{SampleId{1}, 3, 0, 10});
  EXPECT_TRUE(server.is_silent());
  end(op, Outcome::kOk, 4);
  server.request(kController, kPoolSlot, 50, GenerateRequest{SampleId{1}, 3, 0, 10});
  EXPECT_EQ(replies().size(), 1U);
}

TEST_F(EngineServerTest, ANewRequestForASampleEndsTheOneBefore) {
  const OpId older = generate(1);
  const OpId newer = generate(1);
  ASSERT_EQ(server.effects<port::StopCompute>().size(), 1U);
  end(older, Outcome::kAborted, 9);
  EXPECT_TRUE(replies().empty());
  EXPECT_EQ(server.notes<port::Decoded>().size(), 1U);
  end(newer, Outcome::kOk, 9);
  EXPECT_EQ(replies().size(), 1U);
}

TEST_F(EngineServerTest, AFullTableRefuses) {
  for (std::uint64_t sample = 1; sample <= 8; ++sample) generate(sample);
  EXPECT_EQ(generate(9), OpId{});
  EXPECT_EQ(server.notes<port::Refused>().at(0).reason, Refusal::kBusy);
}

TEST_F(EngineServerTest, StrangersAreRefused) {
  server.request(kStranger, kPoolSlot, 1, PauseEngine{});
  EXPECT_FALSE(server.protocol().paused());
  EXPECT_EQ(server.notes<port::Refused>().size(), 1U);
}

// ---- Pause ----

TEST_F(EngineServerTest, AbortEndsWhatRunsAndAnswersWhenNothingDoes) {
  const OpId op = generate(1);
  pause(PauseMode::kAbortResubmit);
  ASSERT_EQ(server.effects<port::StopCompute>().size(), 1U);
  EXPECT_FALSE(was_paused());
  end(op, Outcome::kAborted, 12);
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kAborted);
  EXPECT_EQ(replies()[0].tokens, 12U);
  ASSERT_TRUE(was_paused());
  EXPECT_EQ((server.bodies<port::Send, EnginePaused>()[0].running), 1U);
  EXPECT_EQ(generate(2), OpId{});
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kFailed);
  resume();
  EXPECT_NE(generate(2), OpId{});
}

TEST_F(EngineServerTest, InPlaceParksAndGoesOnWithOneSegmentAVersion) {  // H34, TC-RP-03
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  EXPECT_EQ(freezes(), std::vector<bool>{true});
  EXPECT_FALSE(was_paused());
  close(op, 10);
  EXPECT_TRUE(was_paused());
  EXPECT_EQ(server.notes<port::Decoded>().at(0).end, SegmentEnd::kFrozen);
  const auto reports = server.sends<SegmentReport>();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].to, kController);
  EXPECT_EQ(reports[0].to_slot, kPoolSlot);
  EXPECT_EQ(from_record<SegmentReport>(reports[0].body).version, 3U);
  server.answer(reports[0], Ack{});
  server.tell(kReceiverSlot, WantWrite{4});
  EXPECT_TRUE(granted());
  server.tell(kReceiverSlot, WriteEnded{4, true});
  server.tell(kReceiverSlot, WeightsCommitted{4});
  resume();
  EXPECT_EQ(freezes(), std::vector<bool>{false});
  server.request(kController, kTrainLoopSlot, ++last, SetVersion{4});
  EXPECT_TRUE(server.effects<port::StopCompute>().empty());
  end(op, Outcome::kOk, 20);
  EXPECT_EQ(replies().at(0).version, 4U);
  EXPECT_EQ(replies()[0].tokens, 20U);
}

// A version may fall only with a later training epoch; words of the one before come too late.
TEST_F(EngineServerTest, OnlyALaterTrainingEpochAnnouncesALowerVersion) {
  const auto refused = [&](const SetVersion& set) {
    server.request(kController, kTrainLoopSlot, ++last, set);
    EXPECT_EQ(server.sends<Ack>().size(), 1U);
    return !server.notes<port::Refused>().empty();
  };
  EXPECT_FALSE(refused({4, 1}));
  EXPECT_TRUE(refused({3, 1}));
  EXPECT_FALSE(refused({2, 2}));
  EXPECT_TRUE(refused({5, 1}));
  EXPECT_FALSE(refused({3, 2}));
}

TEST_F(EngineServerTest, AnEmptySegmentIsNotReported) {
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  close(op, 0);
  EXPECT_TRUE(server.sends<SegmentReport>().empty());
  EXPECT_TRUE(server.notes<port::Decoded>().empty());
  EXPECT_TRUE(was_paused());
}

TEST_F(EngineServerTest, RequestsThatComeWhileParkedBeginWithContinue) {
  pause(PauseMode::kInPlace);
  EXPECT_EQ(generate(1), OpId{});
  EXPECT_TRUE(replies().empty());
  resume();
  EXPECT_EQ(server.effects<port::StartCompute>().size(), 1U);
}

// The pool would finish the sample and lose its first tokens.
TEST_F(EngineServerTest, TheReplyWaitsForTheReportOfAnEarlierSegment) {
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  close(op, 10);
  const port::Send report = server.sends<SegmentReport>().at(0);
  resume();
  end(op, Outcome::kOk, 5);
  EXPECT_TRUE(replies().empty());
  server.answer(report, Ack{});
  EXPECT_EQ(replies().at(0).tokens, 5U);
}

TEST_F(EngineServerTest, AReportThatIsNeverAnsweredHoldsTheReplyForABoundedTime) {
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  close(op, 10);
  const TimerId timer = server.effects<port::ArmTimer>().at(0).timer;
  resume();
  end(op, Outcome::kOk, 5);
  server.fire(timer);
  EXPECT_TRUE(replies().empty());
  server.fire(timer);
  EXPECT_EQ(replies().size(), 1U);
}

TEST_F(EngineServerTest, APauseOvertakenByItsContinueComesTooLate) {
  server.request(kController, kPauseGateSlot, 8, ContinueEngine{});
  server.request(kController, kPauseGateSlot, 7, PauseEngine{});
  EXPECT_FALSE(server.protocol().paused());
  EXPECT_EQ(server.notes<port::Refused>().at(0).reason, Refusal::kStaleAttempt);
}

TEST_F(EngineServerTest, AContinueBeforeTheDeviceParkedGoesOnDecoding) {
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  resume();
  EXPECT_EQ((server.bodies<port::Send, EnginePaused>().at(0).outcome), Outcome::kAborted);
  EXPECT_EQ(freezes(), std::vector<bool>{false});
  close(op, 3);
  EXPECT_EQ(server.protocol().count(DecodePhase::kDecoding), 1U);
  end(op, Outcome::kOk, 4);
  EXPECT_TRUE(replies().empty());  // Behind the report of the first three.
}

// The second freeze's segment is still open: whoever writes now writes under a decode.
TEST_F(EngineServerTest, TwoPausesWaitForBothClosedSegments) {
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  resume();
  pause(PauseMode::kInPlace);
  close(op, 3);
  EXPECT_FALSE(was_paused());
  close(op, 1);
  EXPECT_TRUE(was_paused());
}

// ---- Writing ----

TEST_F(EngineServerTest, AWriterWaitsForDecodesAndClosesAdmission) {
  const OpId op = generate(1);
  server.tell(kReceiverSlot, WantWrite{4});
  EXPECT_FALSE(granted());
  EXPECT_EQ(generate(2), OpId{});
  end(op, Outcome::kOk, 5);
  EXPECT_TRUE(granted());
  server.tell(kReceiverSlot, WriteEnded{4, true});
  EXPECT_TRUE(server.effects<port::StartCompute>().empty());
  server.tell(kReceiverSlot, WeightsCommitted{4});
  ASSERT_EQ(server.effects<port::StartCompute>().size(), 1U);
  EXPECT_EQ(server.effects<port::StartCompute>()[0].version, 4U);
}

TEST_F(EngineServerTest, APauseLetsAWaitingWriterIn) {  // H03
  const OpId op = generate(1);
  server.tell(kReceiverSlot, WantWrite{4});
  pause(PauseMode::kInPlace);
  close(op, 5);
  EXPECT_TRUE(granted());
  EXPECT_TRUE(was_paused());
}

TEST_F(EngineServerTest, AContinueDuringAWriteLetsNothingDecode) {  // H03
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  close(op, 5);
  server.tell(kReceiverSlot, WantWrite{4});
  EXPECT_TRUE(granted());
  resume();
  EXPECT_TRUE(freezes().empty());
  EXPECT_EQ(generate(2), OpId{});
  server.tell(kReceiverSlot, WriteEnded{4, true});
  EXPECT_TRUE(freezes().empty());
  server.tell(kReceiverSlot, WeightsCommitted{4});
  EXPECT_EQ(freezes(), std::vector<bool>{false});
  EXPECT_EQ(server.effects<port::StartCompute>().size(), 1U);
}

TEST_F(EngineServerTest, SplitInTwoStepsTheWriterAndTheReadersWaitForEachOther) {  // H03
  begin(look_then_take);
  const OpId op = generate(1);
  server.tell(kReceiverSlot, WantWrite{4});
  const auto acquire = server.tells<AcquireWriter>();
  ASSERT_EQ(acquire.size(), 1U);
  pause(PauseMode::kInPlace);
  close(op, 5);
  server.tell(kServerSlot, acquire[0]);
  EXPECT_FALSE(granted());
  WaitList waits;
  server.protocol().list_waits(waits);
  bool on_readers = false;
  bool on_continue = false;
  for (const Wait& wait : waits) {
    on_readers = on_readers || (wait.on == server_node(0) && wait.what == "readers");
    on_continue = on_continue || (wait.on == kController && wait.what == "continue");
  }
  EXPECT_TRUE(on_readers);
  EXPECT_TRUE(on_continue);
}

TEST_F(EngineServerTest, SplitInTwoStepsADecodeRunsDuringTheWrite) {  // H03
  begin(look_then_take);
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  close(op, 5);
  server.tell(kReceiverSlot, WantWrite{4});
  const AcquireWriter acquire = server.tells<AcquireWriter>().at(0);
  resume();
  server.tell(kServerSlot, acquire);
  EXPECT_TRUE(granted());
  EXPECT_EQ(server.protocol().count(DecodePhase::kDecoding), 1U);
}

TEST_F(EngineServerTest, HalfWrittenWeightsServeNothingUntilACommit) {  // H27
  const OpId op = generate(1);
  pause(PauseMode::kInPlace);
  close(op, 5);
  server.answer(server.sends<SegmentReport>().at(0), Ack{});
  server.tell(kReceiverSlot, WantWrite{4});
  server.tell(kReceiverSlot, WriteEnded{4, false});
  EXPECT_EQ(server.effects<port::StopCompute>().size(), 1U);
  resume();
  EXPECT_TRUE(freezes().empty());
  end(op, Outcome::kAborted, 0);
  EXPECT_EQ(replies().at(0).end, SegmentEnd::kAborted);
  EXPECT_EQ(generate(2), OpId{});
  EXPECT_EQ(server.notes<port::Refused>().at(0).reason, Refusal::kUnsynced);
  server.tell(kReceiverSlot, WeightsCommitted{4});
  EXPECT_NE(generate(3, 4), OpId{});
}

TEST_F(EngineServerTest, UnprovenWeightsStopWhatRuns) {
  const OpId op = generate(1);
  server.tell(kReceiverSlot, WeightsUnproven{});
  EXPECT_EQ(server.effects<port::StopCompute>().at(0).op, op);
  EXPECT_EQ(generate(2), OpId{});
}

TEST_F(EngineServerTest, AWriterThatGaveUpLeavesTheOldVersionServing) {
  server.tell(kReceiverSlot, WantWrite{4});
  server.tell(kReceiverSlot, WriteEnded{3, true});
  EXPECT_NE(generate(1), OpId{});
}

TEST_F(EngineServerTest, ItsStateIsAllThereIs) {
  const OpId op = generate(1);
  generate(2);
  pause(PauseMode::kInPlace);
  close(op, 5);
  server.tell(kReceiverSlot, WantWrite{4});
  EXPECT_TRUE(server.reload(make_server()));
  EXPECT_EQ(server.protocol().count(DecodePhase::kParked), 1U);
  EXPECT_FALSE(granted());
}

}  // namespace
}  // namespace areal::test
