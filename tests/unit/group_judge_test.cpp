// Judges of groups, fences, plans, pairs and repeated updates: each finds what was planted, and nothing else does.
#include "tests/unit/trace_builder.h"

namespace areal::sim {
namespace {

using port::BatchKind;

constexpr GroupId kPayload{1};
constexpr GroupId kControl{2};
constexpr NodeId kMembers[3] = {kInfer[0], kInfer[1], kTrain[0]};

// A group of three of its own (not the pair's world): two engine ranks and a trainer.
Trace joined() {
  Trace trace;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    trace.effect(kMembers[rank], port::JoinGroup{kPayload, port::Backend::kNccl, rank, 3, 100});
    trace.effect(kMembers[rank], port::JoinGroup{kControl, port::Backend::kGloo, rank, 3, 100});
  }
  return trace;
}

port::PostBatch barrier(std::uint64_t tag = 7) {
  port::PostBatch batch;
  batch.group = kControl;
  batch.batch = BatchId{tag};
  batch.tag = tag;
  batch.version = 3;
  return batch;
}

port::PostBatch payload(BatchKind kind, std::uint64_t elements) {
  port::PostBatch batch = barrier();
  batch.group = kPayload;
  batch.kind = kind;
  batch.elements = elements;
  batch.bytes = 2 * elements;
  return batch;
}

void finish(Trace& trace, NodeId node, const port::PostBatch& batch, port::Outcome outcome = port::Outcome::kOk) {
  trace.input(node, port::BatchDone{batch.group, batch.batch, outcome, {}, 0, 0});
}

TEST(GroupJudge, CleanMeetingsWakeNobody) {
  Trace trace = joined();
  for (const NodeId node : kMembers) trace.effect(node, barrier());
  for (const NodeId node : kMembers) finish(trace, node, barrier());
  trace.effect(kMembers[0], payload(BatchKind::kReceive, 40));
  trace.effect(kMembers[1], payload(BatchKind::kReceive, 60));
  trace.effect(kMembers[2], payload(BatchKind::kSend, 100));
  for (const NodeId node : kMembers) trace.effect(node, port::LeaveGroup{kControl});
  trace.end();
  EXPECT_EQ(trace.names(), "");
}

TEST(GroupJudge, RingWhereEverybodySends) {
  Trace trace = joined();
  for (const NodeId node : kMembers) trace.effect(node, payload(BatchKind::kSend, 100));
  EXPECT_EQ(trace.names(), "");
}

// The odd one out is to blame although it came first.
TEST(GroupJudge, OperationsOfAnotherOrder) {
  Trace trace = joined();
  trace.effect(kMembers[1], barrier(8));
  trace.effect(kMembers[0], barrier(7));
  trace.effect(kMembers[2], barrier(7));
  EXPECT_EQ(trace.names(), "INV-6 INV-GLOO-ORDER");
  EXPECT_TRUE(trace.found(InvariantId::kInv6, kMembers[1], 3));
  EXPECT_FALSE(trace.found(InvariantId::kInv6, kMembers[0]));
}

TEST(GroupJudge, DisagreementOnNcclIsNoGlooOrder) {
  Trace trace = joined();
  port::PostBatch other = payload(BatchKind::kReceive, 50);
  other.tag = 9;
  trace.effect(kMembers[0], payload(BatchKind::kReceive, 50));
  trace.effect(kMembers[1], other);
  trace.effect(kMembers[2], payload(BatchKind::kSend, 100));
  EXPECT_EQ(trace.names(), "INV-6");
  EXPECT_TRUE(trace.found(InvariantId::kInv6, kMembers[1], 3));
}

TEST(GroupJudge, MemberThatIsDoneBeforeAllHavePosted) {
  Trace trace = joined();
  trace.effect(kMembers[0], barrier());
  finish(trace, kMembers[0], barrier());
  EXPECT_EQ(trace.names(), "INV-6");
  EXPECT_TRUE(trace.found(InvariantId::kInv6, kMembers[0], 3));
  EXPECT_NE(trace.violations().all()[0].message.find("missing: infer-1 train-0"), std::string::npos);
}

TEST(GroupJudge, MemberThatLeavesItsOwnOperation) {
  Trace trace = joined();
  trace.effect(kMembers[0], barrier());
  trace.effect(kMembers[0], port::LeaveGroup{kControl});
  EXPECT_EQ(trace.names(), "INV-6");
}

TEST(GroupJudge, NothingIsComparedAfterTheEpochEnded) {
  for (const int how : {0, 1, 2}) {
    Trace trace = joined();
    trace.effect(kMembers[0], barrier());
    if (how == 0) trace.effect(kMembers[1], port::AbortGroup{kControl});
    if (how == 1) finish(trace, kMembers[0], barrier(), port::Outcome::kPeerGone);
    if (how == 2) {
      for (const NodeId node : kMembers) trace.input(node, port::Started{1, 0, 1});
      trace.restart(kMembers[1]);
    }
    trace.effect(kMembers[1], barrier(9));
    trace.effect(kMembers[2], barrier(8));
    finish(trace, kMembers[2], barrier(8));
    EXPECT_EQ(trace.names(), "") << how;
  }
}

TEST(GroupJudge, SentAndReceivedDiffer) {
  Trace trace = joined();
  trace.effect(kMembers[0], payload(BatchKind::kReceive, 40));
  trace.effect(kMembers[1], payload(BatchKind::kReceive, 50));
  trace.effect(kMembers[2], payload(BatchKind::kSend, 100));
  EXPECT_EQ(trace.names(), "INV-6");
  EXPECT_TRUE(trace.found(InvariantId::kInv6, NodeId{}, 3));
}

TEST(GroupJudge, BytesThatDoNotFitTheDtype) {
  Trace trace = joined();
  port::PostBatch wrong = payload(BatchKind::kSend, 100);
  wrong.bytes = 400;
  trace.effect(kMembers[2], wrong);
  EXPECT_EQ(trace.names(), "INV-XFER-DTYPE");
  EXPECT_TRUE(trace.found(InvariantId::kXferDtype, kMembers[2], 3));
}

TEST(GroupJudge, SenderUsesItsOwnDtypeOnTheWire) {
  Trace trace = joined();
  port::PostBatch wide = payload(BatchKind::kSend, 100);
  wide.dtype = DType::kF32;
  wide.bytes = 400;
  trace.effect(kMembers[0], payload(BatchKind::kReceive, 40));
  trace.effect(kMembers[1], payload(BatchKind::kReceive, 60));
  trace.effect(kMembers[2], wide);
  EXPECT_EQ(trace.names(), "INV-XFER-DTYPE");
  EXPECT_TRUE(trace.found(InvariantId::kXferDtype, kMembers[2], 3));
}

TEST(GroupJudge, BarrierOnAnNcclGroup) {
  Trace trace = joined();
  port::PostBatch batch = barrier();
  batch.group = kPayload;
  trace.effect(kMembers[1], batch);
  EXPECT_EQ(trace.names(), "INV-GLOO-CTRL");
  EXPECT_TRUE(trace.found(InvariantId::kGlooCtrl, kMembers[1], 3));
}

TEST(GroupJudge, RankClaimedTwice) {
  Trace trace;
  // The pair's own world of six: infer-1 takes infer-0's rank and comes first.
  trace.effect(kInfer[1], port::JoinGroup{kPayload, port::Backend::kNccl, 0, 6, 100});
  trace.effect(kInfer[0], port::JoinGroup{kPayload, port::Backend::kNccl, 0, 6, 100});
  EXPECT_EQ(trace.names(), "INV-19");
  EXPECT_TRUE(trace.found(InvariantId::kInv19, kInfer[1]));
  EXPECT_FALSE(trace.found(InvariantId::kInv19, kInfer[0]));
}

TEST(GroupJudge, RankBeyondTheWorld) {
  Trace trace;
  trace.effect(kInfer[0], port::JoinGroup{kPayload, port::Backend::kNccl, 3, 3, 100});
  EXPECT_EQ(trace.names(), "INV-19");
}

TEST(FenceJudge, MeetingBeforeTheDeviceIsDone) {
  for (const bool fenced : {true, false}) {
    Trace trace = joined();
    port::StartCompute apply;
    apply.what = port::ComputeKind::kApply;
    trace.effect(kMembers[1], apply);
    port::ComputeDone done;
    done.what = port::ComputeKind::kApply;
    trace.input(kMembers[1], done);
    done.what = port::ComputeKind::kFence;
    if (fenced) trace.input(kMembers[1], done);
    for (const NodeId node : kMembers) trace.effect(node, barrier());
    EXPECT_EQ(trace.names(), fenced ? "" : "INV-GLOO-FENCE");
    EXPECT_EQ(trace.found(InvariantId::kGlooFence, kMembers[1], 3), !fenced);
  }
}

// The fence of an attempt that is given up between apply and fence is stopped; the next epoch meets without it.
TEST(FenceJudge, AnUpdateThatWasGivenUpNeedsNoFence) {
  constexpr GroupId kNext{4};
  Trace trace = joined();
  port::StartCompute apply;
  apply.what = port::ComputeKind::kApply;
  trace.effect(kMembers[1], apply);
  port::ComputeDone done;
  done.what = port::ComputeKind::kApply;
  trace.input(kMembers[1], done);
  for (const NodeId node : kMembers) {
    for (const GroupId group : {kPayload, kControl}) trace.effect(node, port::AbortGroup{group});
  }
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    trace.effect(kMembers[rank], port::JoinGroup{kNext, port::Backend::kGloo, rank, 3, 101});
  }
  port::PostBatch meeting = barrier();
  meeting.group = kNext;
  meeting.version = 0;
  for (const NodeId node : kMembers) trace.effect(node, meeting);
  EXPECT_EQ(trace.names(), "");
}

// ---- Plans ----

// Both trainers send to all four receivers; `wrong` disagrees with its peers.
void say_plans(Trace& trace, NodeId wrong) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    trace.note(kInfer[rank], port::PlanBuilt{1, rank, false, 8, 100, 100, 0, {1, rank}});
    for (std::uint32_t sender = 4; sender < 6; ++sender) {
      const Digest128 digest{sender, rank};
      const Digest128 other{sender, rank + 100};
      trace.note(kInfer[rank],
                 port::PlanPeer{1, sender, rank, false, 4, 50, 100, wrong == kInfer[rank] ? other : digest});
      trace.note(kTrain[sender - 4],
                 port::PlanPeer{1, sender, rank, true, 4, 50, 100, wrong == kTrain[sender - 4] ? other : digest});
    }
  }
}

void connect(Trace& trace) {
  trace.note(kGateway, port::PairChanged{1, port::PairState::kReserved, 0});
  trace.note(kGateway, port::PairChanged{1, port::PairState::kConnected, 0});
}

TEST(PlanJudge, RankThatDisagreesWithAllItsPeers) {
  for (const NodeId wrong : {NodeId{}, kTrain[0], kInfer[2]}) {
    Trace trace;
    say_plans(trace, wrong);
    EXPECT_EQ(trace.names(), "") << "nobody has used the plans";
    connect(trace);
    EXPECT_EQ(trace.names(), wrong == NodeId{} ? "" : "INV-PLAN-SYM");
    if (wrong != NodeId{}) {
      EXPECT_TRUE(trace.found(InvariantId::kPlanSym, wrong));
      EXPECT_EQ(trace.violations().all().size(), 1U);
    }
  }
}

TEST(PlanJudge, HolesAndOverlaps) {
  Trace trace;
  trace.note(kInfer[1], port::PlanBuilt{1, 1, false, 8, 100, 90, 0, {}});
  trace.note(kInfer[2], port::PlanBuilt{1, 2, false, 8, 100, 100, 5, {}});
  trace.note(kTrain[0], port::PlanBuilt{1, 4, true, 8, 100, 90, 0, {}});  // What a sender keeps is its own.
  connect(trace);
  EXPECT_EQ(trace.names(), "INV-PLAN-COVER");
  EXPECT_TRUE(trace.found(InvariantId::kPlanCover, kInfer[1]));
  EXPECT_TRUE(trace.found(InvariantId::kPlanCover, kInfer[2]));
  EXPECT_FALSE(trace.found(InvariantId::kPlanCover, kTrain[0]));
}

TEST(PlanJudge, ReceiverThatSends) {
  Trace trace;
  trace.note(kInfer[1], port::PlanPeer{1, 1, 0, true, 4, 50, 100, {}});
  connect(trace);
  EXPECT_EQ(trace.names(), "INV-PLAN-RANGE");
  EXPECT_TRUE(trace.found(InvariantId::kPlanRange, kInfer[1]));
}

// ---- Pair and updates ----

TEST(PairJudge, MovesThatNoArrowAllows) {
  Trace trace;
  trace.note(kGateway, port::PairChanged{1, port::PairState::kConnected, 0});
  EXPECT_EQ(trace.names(), "INV-PAIR-RESERVE-FIRST");
  Trace twice;
  connect(twice);
  twice.note(kGateway, port::PairChanged{2, port::PairState::kReserved, 0});
  EXPECT_EQ(twice.names(), "INV-PAIR-UNIQUE");
  EXPECT_TRUE(twice.found(InvariantId::kPairUnique, kGateway));
}

TEST(PairJudge, WholeLifeAndARestartedGateway) {
  using port::PairState;
  Trace trace;
  trace.input(kGateway, port::Started{1, 0, 1});
  for (const PairState state : {PairState::kReserved, PairState::kRollingBack, PairState::kAbsent}) {
    trace.note(kGateway, port::PairChanged{1, state, 0});
  }
  for (const PairState state : {PairState::kReserved, PairState::kConnected, PairState::kUpdating, PairState::kBroken,
                                PairState::kTearingDown, PairState::kAbsent, PairState::kAbsent}) {
    trace.note(kGateway, port::PairChanged{2, state, 0});
  }
  trace.note(kGateway, port::PairChanged{3, PairState::kReserved, 0});
  trace.note(kGateway, port::UpdateStarted{3, 1, 1, {}, {}});
  trace.restart(kGateway);
  trace.note(kGateway, port::PairChanged{4, PairState::kReserved, 0});
  trace.note(kGateway, port::UpdateStarted{4, 1, 1, {}, {}});
  EXPECT_EQ(trace.names(), "");
}

TEST(PairJudge, RankCalledBeforeTheReservation) {
  Trace trace;
  connect(trace);
  trace.note(kInfer[0], port::CollectiveEntered{1, 1, 1, 0});
  EXPECT_EQ(trace.names(), "");
  trace.note(kInfer[0], port::CollectiveEntered{2, 1, 1, 0});
  EXPECT_EQ(trace.names(), "INV-PAIR-RESERVE-FIRST");
}

TEST(PairJudge, VersionPublishedAgainOrBackwards) {
  Trace trace;
  start_cluster(trace);
  run_update(trace, {.version = 1});
  run_update(trace, {.version = 2});
  EXPECT_EQ(trace.names(), "");
  trace.note(kGateway, port::VersionPublished{1, 2, 1, {}, {}, 0});
  EXPECT_EQ(trace.names(), "INV-PAIR-VERSION");
  EXPECT_TRUE(trace.found(InvariantId::kPairVersion, kGateway, 2));
}

TEST(PairJudge, ConnectedAtAVersionNobodyPublished) {
  Trace trace;
  trace.note(kGateway, port::PairChanged{1, port::PairState::kReserved, 0});
  trace.note(kGateway, port::PairChanged{1, port::PairState::kConnected, 4});
  EXPECT_EQ(trace.names(), "INV-PAIR-VERSION");
}

TEST(PairJudge, TwoUpdatesAtOnce) {
  Trace trace;
  trace.note(kGateway, port::UpdateStarted{1, 1, 1, {}, {}});
  trace.note(kGateway, port::UpdateEnded{1, 1, 1, port::Outcome::kFailed, {}});
  trace.note(kGateway, port::UpdateStarted{1, 1, 2, {}, {}});
  EXPECT_EQ(trace.names(), "");
  trace.note(kGateway, port::UpdateStarted{1, 2, 1, {}, {}});
  EXPECT_EQ(trace.names(), "INV-PAIR-SERIAL");
  EXPECT_TRUE(trace.found(InvariantId::kPairSerial, kGateway, 2));
}

TEST(OnceJudge, CollectivesEnteredTwice) {
  Trace trace;
  connect(trace);
  trace.note(kInfer[0], port::CollectiveEntered{1, 1, 1, 0});
  trace.note(kInfer[0], port::CollectiveEntered{1, 1, 2, 0});
  trace.note(kInfer[1], port::CollectiveEntered{1, 1, 1, 1});
  trace.note(kInfer[0], port::CollectiveEntered{1, 2, 1, 0});
  EXPECT_EQ(trace.names(), "");
  trace.note(kInfer[0], port::CollectiveEntered{1, 1, 2, 0});
  EXPECT_EQ(trace.names(), "INV-GW-ONCE");
  EXPECT_TRUE(trace.found(InvariantId::kGwOnce, kInfer[0], 1));
}

}  // namespace
}  // namespace areal::sim
