// Judges of labels, publication, bytes, routes and decoding: each finds what was planted, and nothing else does.
#include "tests/unit/trace_builder.h"

namespace areal::sim {
namespace {

using port::SegmentEnd;

// Sample 1 goes to engine 0, is decoded at `truth` and stored under `label`.
void run_segment(Trace& trace, Version pinned, Version truth, Version label) {
  trace.note(kRouter, port::Routed{SampleId{1}, EngineId{0}, pinned});
  trace.note(kInfer[0], port::Decoded{SampleId{1}, EngineId{0}, truth, 5, SegmentEnd::kStop, engine_weights(truth)});
  trace.note(kController,
             port::SegmentStored{SampleId{1}, EngineId{0}, pinned, label, 5, SegmentEnd::kStop, engine_weights(truth)});
}

Trace updated(const UpdateSteps& steps = {}, JudgeSetup setup = make_setup()) {
  Trace trace(std::move(setup));
  start_cluster(trace);
  run_update(trace, steps);
  return trace;
}

TEST(CleanTrace, WakesNoJudge) {
  Trace trace = updated();
  run_segment(trace, 1, 1, 1);
  run_update(trace, {.version = 2});
  run_segment(trace, 1, 2, 2);  // Sent before the update, decoded after it.
  trace.end();
  EXPECT_EQ(trace.names(), "");
  EXPECT_EQ(trace.violations().repeated(), 0U);
}

TEST(LabelJudge, PinnedVersionStoredInsteadOfTheServedOne) {
  Trace trace = updated();
  run_segment(trace, 0, 1, 0);
  EXPECT_EQ(trace.names(), "INV-1");
  EXPECT_TRUE(trace.found(InvariantId::kInv1, kController, 0));
}

TEST(LabelJudge, LabelOlderThanThePinnedVersion) {
  Trace trace = updated();
  trace.note(kInfer[0], port::Decoded{SampleId{1}, EngineId{0}, 0, 5, SegmentEnd::kStop, engine_weights(0)});
  trace.note(kController, port::SegmentStored{SampleId{1}, EngineId{0}, 1, 0, 5, SegmentEnd::kStop, engine_weights(0)});
  EXPECT_EQ(trace.names(), "INV-1");
}

TEST(LabelJudge, ServerThatNamesTheNextVersionIsToBlameItself) {
  Trace trace = updated();
  const auto wrong = port::Decoded{SampleId{1}, EngineId{0}, 1, 5, SegmentEnd::kStop, engine_weights(0)};
  trace.note(kRouter, port::Routed{SampleId{1}, EngineId{0}, 1});
  trace.note(kInfer[0], wrong);
  trace.note(kController, port::SegmentStored{SampleId{1}, EngineId{0}, 1, 1, 5, SegmentEnd::kStop, wrong.digest});
  EXPECT_EQ(trace.names(), "INV-1");
  EXPECT_TRUE(trace.found(InvariantId::kInv1, kInfer[0], 1));
  EXPECT_FALSE(trace.found(InvariantId::kInv1, kController));
}

TEST(LabelJudge, TokensFromAnEngineNobodyWatchesAreHeldToItsWeights) {
  Trace trace = updated();
  trace.note(kController, port::SegmentStored{SampleId{1}, EngineId{0}, 0, 0, 5, SegmentEnd::kStop, engine_weights(1)});
  EXPECT_EQ(trace.names(), "INV-1");
}

TEST(PublishJudge, MemberThatNeverApplied) {
  const Trace trace = updated({.skips = kInfer[3]});
  EXPECT_EQ(trace.names(), "INV-2");
  EXPECT_TRUE(trace.found(InvariantId::kInv2, kInfer[3], 1));
  EXPECT_NE(trace.violations().all()[0].message.find("infer-3 has not applied it"), std::string::npos);
}

TEST(PublishJudge, MemberThatDidNotWaitForItsDevice) { EXPECT_EQ(updated({.fences = false}).names(), "INV-2"); }

TEST(PublishJudge, VersionUsedBeforeItIsPublished) {
  Trace trace = updated({.publishes = false});
  trace.note(kRouter, port::VersionSet{port::Role::kRouter, 1});
  EXPECT_TRUE(trace.found(InvariantId::kInv2, kRouter, 1));
}

TEST(PublishJudge, TrainerThatNeverEntered) {
  Trace trace;
  start_cluster(trace);
  run_update(trace);
  // The same with a second version that train-1 does not enter.
  trace.note(kGateway, port::PairChanged{1, port::PairState::kUpdating, 1});
  trace.note(kTrain[0], port::CollectiveEntered{1, 2, 1, 4});
  trace.note(kGateway, port::VersionPublished{1, 2, 1, port::UpdateMode::kFull, {}, 0});
  EXPECT_TRUE(trace.found(InvariantId::kInv2, kTrain[1], 2));
  EXPECT_FALSE(trace.found(InvariantId::kInv2, kTrain[0], 2));
}

TEST(BytesJudge, OneRankHoldsOtherBytes) {
  const Trace trace = updated({.differs = kInfer[3]});
  EXPECT_EQ(trace.names(), "INV-3");
  EXPECT_TRUE(trace.found(InvariantId::kInv3, kInfer[3], 1));
  EXPECT_FALSE(trace.found(InvariantId::kInv3, kInfer[1]));
}

TEST(BytesJudge, TensorsThatWereSkipped) {
  const Trace trace = updated({.writes_less = kInfer[1]});
  EXPECT_EQ(trace.names(), "INV-3");
  EXPECT_TRUE(trace.found(InvariantId::kInv3, kInfer[1], 1));
  EXPECT_NE(trace.violations().all()[0].message.find("9 of 10"), std::string::npos);
}

TEST(RouteJudge, EngineThatRestartedAndWasDeclaredAgain) {
  Trace trace = updated();
  trace.restart(kInfer[2]);
  trace.note(kRouter, port::Routed{SampleId{1}, EngineId{1}, 1});
  EXPECT_EQ(trace.names(), "") << "the router cannot know yet";
  trace.note(kRouter, port::EligibleChanged{EngineId{1}, true, 1});
  trace.note(kRouter, port::Routed{SampleId{2}, EngineId{0}, 1});
  EXPECT_EQ(trace.names(), "") << "the other engine is as it was";
  trace.note(kRouter, port::Routed{SampleId{3}, EngineId{1}, 1});
  EXPECT_EQ(trace.names(), "INV-9");
  EXPECT_TRUE(trace.found(InvariantId::kInv9, kRouter, 1));
}

TEST(RouteJudge, EngineThatTheRouterItselfWithdrew) {
  Trace trace = updated();
  trace.note(kGuard, port::ProcessChanged{kInfer[2], 1, false, 0});
  trace.note(kRouter, port::EligibleChanged{EngineId{1}, false, 1});
  trace.note(kRouter, port::Routed{SampleId{1}, EngineId{1}, 1});
  EXPECT_EQ(trace.names(), "INV-9");
}

TEST(RouteJudge, QuarantinedEngineAndUnpublishedVersion) {
  Trace trace = updated();
  trace.note(kInfer[3], port::WeightsState{EngineId{1}, 1, port::ServeState::kQuarantined, 1, {}});
  trace.note(kRouter, port::Routed{SampleId{1}, EngineId{1}, 1});
  EXPECT_TRUE(trace.found(InvariantId::kInv9, kRouter, 1));
  trace.note(kRouter, port::Routed{SampleId{2}, EngineId{0}, 2});
  EXPECT_TRUE(trace.found(InvariantId::kInv9, kRouter, 2));
}

TEST(DecodeJudge, BytesOfNoVersion) {
  Trace trace = updated();
  trace.note(kInfer[0], port::Decoded{SampleId{1}, EngineId{0}, 1, 5, SegmentEnd::kStop, {9, 9}});
  EXPECT_EQ(trace.names(), "INV-8");
  EXPECT_TRUE(trace.found(InvariantId::kInv8, kInfer[0], 1));
}

TEST(DecodeJudge, TokensWhileAnyRankIsWritten) {
  Trace trace = updated();
  trace.note(kInfer[0], port::PauseChanged{EngineId{0}, true, {}, 0});
  trace.note(kInfer[1], port::ApplyStarted{1, 2, 1, 1, EngineId{0}});
  trace.note(kInfer[2], port::Decoded{SampleId{1}, EngineId{1}, 1, 5, SegmentEnd::kStop, engine_weights(1)});
  EXPECT_EQ(trace.names(), "") << "the other engine may decode";
  trace.note(kInfer[0], port::Decoded{SampleId{2}, EngineId{0}, 1, 0, SegmentEnd::kAborted, {}});
  EXPECT_EQ(trace.names(), "") << "no tokens were made";
  trace.note(kInfer[0], port::Decoded{SampleId{2}, EngineId{0}, 1, 5, SegmentEnd::kStop, engine_weights(1)});
  EXPECT_EQ(trace.names(), "INV-8");
  EXPECT_TRUE(trace.found(InvariantId::kInv8, kInfer[1], 1));
}

TEST(DecodeJudge, ServerDecodesOnRefusedWeights) {
  Trace trace = updated();
  trace.note(kInfer[0], port::WeightsState{EngineId{0}, 0, port::ServeState::kQuarantined, 1, {}});
  port::StartCompute start;
  start.what = port::ComputeKind::kReward;
  trace.effect(kInfer[0], start);
  EXPECT_EQ(trace.names(), "");
  start.what = port::ComputeKind::kGenerate;
  trace.effect(kInfer[0], start);
  EXPECT_EQ(trace.names(), "INV-8");
}

TEST(DecodeJudge, ApplyWithoutPause) {
  EXPECT_EQ(updated({.pauses = false}).names(), "INV-8");
  JudgeSetup setup = make_setup();
  setup.pause_around_update = false;
  EXPECT_EQ(updated({.pauses = false}, setup).names(), "");
}

TEST(DecodeJudge, PauseInPlaceStopsNothing) {
  JudgeSetup setup = make_setup();
  setup.pause = port::PauseMode::kInPlace;
  for (const bool stops : {false, true}) {
    Trace trace(setup);
    start_cluster(trace);
    trace.effect(kInfer[0], port::StopCompute{OpId{4}}, 3);  // A client gave up its request.
    trace.note(kInfer[0], port::PauseChanged{EngineId{0}, true, port::PauseMode::kInPlace, 1}, 90);
    if (stops) trace.effect(kInfer[0], port::StopCompute{OpId{5}}, 90);
    EXPECT_EQ(trace.names(), stops ? "INV-8" : "");
  }
}

}  // namespace
}  // namespace areal::sim
