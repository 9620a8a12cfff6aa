// Drives the training loop alone: a cluster of three trainers and two engines, and answers to whatever it asks.
#pragma once
#include <gtest/gtest.h>

#include "engine/proto/train_loop.h"
#include "tests/unit/effects.h"

namespace areal::proto {
using port::LoopPhase;
using port::RunEnd;
using test::Driven;

inline constexpr TimerId kBackoffTimer{1};
inline constexpr TimerId kPhaseTimer{2};
inline constexpr TimerId kRecoverTimer{3};
inline constexpr std::uint16_t kPort = 900;

inline ClusterMap small_cluster() {
  ClusterMap cluster;
  cluster.trainers = {{10}, {11}, {12}};
  cluster.data_heads = {0, 2};
  cluster.engine_ranks = {{20}, {21}, {22}, {23}};
  cluster.engines = 2;
  cluster.engine_world = 2;
  cluster.gateway = {3};
  cluster.controller = {1};
  cluster.router = {4};
  cluster.guards = {{5}};
  return cluster;
}

// Drives the loop from answer to answer and keeps all phases, sent kinds and published versions.
class TrainLoopTest : public ::testing::Test {
 protected:
  void use(const TrainLoopOptions& options, AfterUpdate after = publish_only_when_ok) {
    loop = Driven<TrainLoop>(TrainLoop(options, small_cluster(), after));
  }
  void keep() {
    for (const auto& note : loop.notes<port::PhaseEntered>()) phases.push_back(note.phase);
    for (const auto& note : loop.notes<port::VersionSet>()) set.push_back(note);
    for (const auto& note : loop.notes<port::RunEnded>()) ended.push_back(note);
  }
  template <RecordType Asked, RecordType Body>
  void answer_all(const Body& body) {
    const auto asked = loop.sends<Asked>();
    ASSERT_FALSE(asked.empty()) << Asked::kName;
    for (const port::Send& send : asked) loop.answer(send, body), keep();
  }
  template <RecordType Body>
  void tell(SlotId from, const Body& body) {
    loop.tell(from, body);
    keep();
  }
  void fire(TimerId timer) {
    loop.fire(timer);
    keep();
  }
  void begin() {
    loop.start();
    answer_all<ConnectRequest>(ConnectReply{Outcome::kOk, 1});
    answer_all<ReservePort>(PortReserved{1, Outcome::kOk, kPort});
    answer_all<JoinTraining>(TrainingJoined{1, Outcome::kOk, {}});
    answer_all<SetVersion>(Ack{});
  }
  void train(Version version) {
    tell(kPoolSlot, BatchReady{{version}, 5, 99});
    answer_all<TrainStep>(StepDone{version - 1, version, Outcome::kOk});
  }
  void collect_and_train(Version version) {
    train(version);
    if (loop.sends<SaveCheckpoint>().empty()) return;
    answer_all<SaveCheckpoint>(CheckpointSaved{1, version, Outcome::kOk, {0, version}});
    store();
  }
  // The store does what it is asked, one after the other.
  void store() {
    while (!loop.effects<port::StorePut>().empty()) {
      const port::StorePut put = loop.effects<port::StorePut>()[0];
      puts.push_back(put);
      loop.feed(port::StoreDone{put.op, Outcome::kOk, put.value});
      keep();
    }
  }
  void to_update(Version version) {
    collect_and_train(version);
    tell(kPauseGateSlot, AllPaused{});
  }
  void reply_update(Version version, Outcome outcome) {
    answer_all<UpdateRequest>(UpdateReply{version, outcome, 1, UpdateMode::kFull, FullReason::kNone, 0});
  }
  void loses(Version version) {
    loop.request({3}, kGatewaySlot, ++last, EnginesLost{version});
    keep();
  }
  void publish() {
    tell(kPauseGateSlot, AllContinued{});
    publish_rest();
  }
  void publish_rest() {
    answer_all<SetVersion>(Ack{});  // Trainers; then those they lead to.
    answer_all<SetVersion>(Ack{});
    answer_all<SetVersion>(Ack{});
  }
  // The ranks leave their group; then the gateway and the guard answer.
  void end() {
    answer_all<LeaveTraining>(Ack{});
    const auto returned = loop.sends<ReturnPort>();
    ASSERT_EQ(returned.size(), 1U);
    answer_all<DisconnectRequest>(Ack{});
    EXPECT_TRUE(ended.empty());
    loop.answer(returned[0], Ack{});
    keep();
  }
  void run_step(Version version) {
    to_update(version);
    reply_update(version, Outcome::kOk);
    publish();
    tell(kDrainSlot, BatchCleared{{version}, Outcome::kOk});
  }

  Driven<TrainLoop> loop{TrainLoop({.updates = 2}, small_cluster())};
  std::uint64_t last = 0;
  std::vector<LoopPhase> phases;
  std::vector<port::VersionSet> set;
  std::vector<port::RunEnded> ended;
  std::vector<port::StorePut> puts;
};

}  // namespace areal::proto
