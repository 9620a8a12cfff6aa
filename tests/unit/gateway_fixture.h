// A gateway with two trainers and two engines of two ranks, and answers to whatever it asks.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>

#include "engine/proto/gateway.h"
#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {

using namespace proto;  // NOLINT(google-build-using-namespace)

inline constexpr std::uint32_t kEngines = 2;
inline constexpr std::uint32_t kInfers = 4;
inline constexpr std::uint32_t kWorld = 6;

inline Gateway make_gateway(bool delta) {
  GatewayOptions options;
  options.delta = delta;
  options.plans = std::make_shared<const std::vector<MemberPlan>>(kWorld);
  return Gateway(std::move(options), rollout_cluster(kEngines));
}

// Answers whatever the gateway asks as ranks would that do what they are asked to; `prepared` and `executed` change
// what a rank says.
class GatewayFixture : public testing::Test {
 protected:
  explicit GatewayFixture(bool delta) : gateway(make_gateway(delta)) {}
  void SetUp() override {
    incarnations.fill(1);
    gateway.start();
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) started(rank);
    ask(ConnectRequest{});
  }

  template <RecordType T>
  void ask(const T& body, NodeId from = kController) {
    gateway.request(from, kTrainLoopSlot, ++last, body);
    gather();
    pump();
  }
  void update(Version version, Epoch training_epoch = 1) { ask(UpdateRequest{version, training_epoch}); }
  void started(std::uint32_t rank) {
    ask(WorkerStarted{map.node_of_transfer_rank(rank), incarnations[rank], 0}, kGuard);
  }
  void exited(std::uint32_t rank) { ask(WorkerExited{map.node_of_transfer_rank(rank), incarnations[rank]}, kGuard); }
  void replace(std::uint32_t rank) {
    exited(rank);
    ++incarnations[rank];
    started(rank);
  }

  void gather() {
    for (const port::Send& send : gateway.effects<port::Send>()) {
      dispatch_record<UpdateReply>(send.body, [&](const UpdateReply& said) { replies.push_back(said); });
      if (send.kind == port::MessageKind::kReply) continue;
      open.push_back(send);
      dispatch_record<Execute>(send.body, [&](const Execute& asked) { executes.push_back(asked); });
      dispatch_record<InitGroups>(send.body, [&](const InitGroups& asked) { inits.push_back(asked); });
      dispatch_record<Teardown>(send.body, [&](const Teardown& asked) { teardowns.push_back(asked); });
      dispatch_record<EngineMember>(send.body, [&](const EngineMember& said) { members.push_back(said); });
      dispatch_record<EnginesLost>(send.body, [&](const EnginesLost& said) { lost.push_back(said); });
    }
    for (const auto& note : gateway.notes<port::VersionPublished>()) published.push_back(note);
    for (const auto& note : gateway.notes<port::UpdateStarted>()) attempts.push_back(note);
    for (const auto& note : gateway.notes<port::AnchorSet>()) anchors.push_back(note);
    for (const port::StorePut& put : gateway.effects<port::StorePut>()) puts.push_back(put);
  }
  void pump() {
    while (true) {
      const auto next = std::ranges::find_if(open, [&](const port::Send& send) { return send.body.kind != held; });
      if (next != open.end()) {
        const auto place = backwards ? open.end() - 1 : next;
        const port::Send send = *place;
        open.erase(place);
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
  [[nodiscard]] std::uint32_t rank_of(NodeId node) const {
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      if (map.node_of_transfer_rank(rank) == node) return rank;
    }
    return kWorld;
  }
  void answer(const port::Send& send) {
    const Record& body = send.body;
    const std::uint32_t rank = rank_of(send.to);
    const auto reply = [&](const auto& said) {
      const Incarnation incarnation = rank < kWorld ? incarnations[rank] : 1;
      gateway.feed(port::MessageIn{send.to, incarnation, send.to_slot, port::MessageKind::kReply, send.request,
                                   to_record(said)});
    };
    dispatch_record<ReportMeta>(body, [&](const auto&) { reply(report_of(rank)); });
    dispatch_record<InitGroups>(body, [&](const auto& b) { reply(InitDone{b.epoch, Outcome::kOk, {}}); });
    dispatch_record<ReservePort>(body, [&](const auto& b) { reply(PortReserved{b.epoch, Outcome::kOk, 4000}); });
    dispatch_record<Prepare>(body, [&](const auto& b) {
      Prepared said{b.epoch, b.version, b.attempt, Outcome::kOk, b.base, 0, 0, DType::kBf16, 0};
      if (prepared) prepared(rank, said);
      reply(said);
    });
    dispatch_record<Execute>(body, [&](const auto& b) {
      Executed said{b.epoch, b.version, b.attempt, Outcome::kOk, {}, 0, b.mode, FullReason::kNone};
      if (rank >= kInfers && b.mode == UpdateMode::kFull) said.reason = b.reason;
      if (executed) executed(rank, said);
      reply(said);
    });
    dispatch_record<Commit>(body,
                            [&](const auto& b) { reply(Committed{b.epoch, b.version, b.attempt, Outcome::kOk}); });
    dispatch_record<AbortUpdate>(body, [&](const auto& b) { reply(UpdateAborted{b.epoch, false}); });
    dispatch_record<Teardown>(body, [&](const auto& b) { reply(TornDown{b.epoch}); });
    dispatch_record<ReturnPort, EngineMember, EnginesLost, WorkerExited>(body, [&](const auto&) { reply(Ack{}); });
  }
  static MetaReport report_of(std::uint32_t rank) {
    if (rank < kInfers) return {Role::kEngine, rank % 2, EngineId{rank / 2}, 2, 0, 0, {}};
    return {Role::kTrainer, rank - kInfers, {}, 2, 0, 0, {}};
  }

  const ClusterMap map = rollout_cluster(kEngines);
  Driven<Gateway> gateway;
  std::uint64_t last = 0;
  std::array<Incarnation, kWorld> incarnations{};
  KindId held = 0;
  bool backwards = false;  // The last one asked answers first.
  std::function<void(std::uint32_t, Prepared&)> prepared;
  std::function<void(std::uint32_t, Executed&)> executed;
  std::deque<port::Send> open;
  std::deque<port::StorePut> puts;
  std::vector<Execute> executes;  // One a rank.
  std::vector<InitGroups> inits;
  std::vector<Teardown> teardowns;
  std::vector<EngineMember> members;
  std::vector<EnginesLost> lost;
  std::vector<UpdateReply> replies;
  std::vector<port::VersionPublished> published;
  std::vector<port::UpdateStarted> attempts;
  std::vector<port::AnchorSet> anchors;
};

}  // namespace areal::test
