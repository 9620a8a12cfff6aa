// A world is a value: copies go on alone, equal worlds have equal words; and what hangs, breaks or packs in it.
#include <gtest/gtest.h>

#include "sim/world/sim_ports.h"
#include "tests/unit/world_fixture.h"

namespace areal::test {
namespace {

const std::shared_ptr<const sim::Room>& smoke() {
  static const std::shared_ptr<const sim::Room> kRoom = room_of(shipped_scenario("smoke"));
  return kRoom;
}

TEST(World, EqualWorldsHaveEqualWordsUntilOneMovesOn) {
  WorldRun first = WorldRun::begin(smoke(), 3);
  WorldRun second = WorldRun::begin(smoke(), 3);
  for (int round = 0; round < 40 && first.may_step(); ++round) {
    ASSERT_EQ(words_of(first.world), words_of(second.world));
    first.go(1);
    ASSERT_NE(words_of(first.world), words_of(second.world));
    second.go(1);
    first.go(37);
    second.go(37);
  }
  EXPECT_EQ(first.digest.digest(), second.digest.digest());
}

TEST(World, AnotherSeedIsAnotherRun) {
  WorldRun first = WorldRun::begin(smoke(), 3);
  WorldRun second = WorldRun::begin(smoke(), 4);
  first.finish();
  second.finish();
  EXPECT_NE(first.digest.digest(), second.digest.digest());
}

// Something global that a run leaves behind would make the second run of a seed another one.
TEST(World, RunsOfOneProcessDoNotFeelEachOther) {
  const auto digest_of = [](std::uint64_t seed) {
    WorldRun run = WorldRun::begin(smoke(), seed);
    run.finish();
    return run.digest.digest();
  };
  const Digest128 before = digest_of(1);
  digest_of(2);
  EXPECT_EQ(digest_of(1), before);
}

// The large model, a death inside an update and lost messages: more state than smoke has.
TEST(World, ACopyOfTheFailoverGoesOnAsTheOriginal) {
  const auto room = room_of(shipped_scenario("failover", {"work.updates=6", "expect.published=0"}));
  WorldRun original = WorldRun::begin(room, 1);
  original.go(4'000);
  ASSERT_TRUE(original.may_step());
  WorldRun copy = original;
  EXPECT_EQ(words_of(copy.world), words_of(original.world));
  original.finish();
  copy.finish();
  EXPECT_EQ(copy.digest.digest(), original.digest.digest());
  EXPECT_EQ(words_of(copy.world), words_of(original.world));
  ASSERT_TRUE(original.world.ended().has_value());
}

// ---- Worlds with protocols of our own ----

// Has nothing to say and keeps nothing.
class Deaf {
 public:
  static constexpr std::string_view kName = "deaf";
  void step(const proto::Input& /*input*/, proto::Outbox& /*out*/) {}
  AREAL_FIELDS()
};

// Keeps the last end of an operation.
class Waiter {
 public:
  static constexpr std::string_view kName = "waiter";
  void step(const proto::Input& input, proto::Outbox& /*out*/) {
    if (const auto* done = std::get_if<port::ComputeDone>(&input); done != nullptr) ++ends, tokens = done->count;
  }
  std::uint64_t ends = 0;
  std::uint64_t tokens = 0;
  AREAL_FIELDS(ends, tokens)
};

// Arms a timer at its start, disarms it when it is told to, and counts how often it fires.
class Disarmer {
 public:
  static constexpr std::string_view kName = "disarmer";
  void step(const proto::Input& input, proto::Outbox& out) {
    if (std::holds_alternative<port::Started>(input)) out.push(port::ArmTimer{TimerId{1}, 20_ms});
    if (std::holds_alternative<port::MessageIn>(input)) out.push(port::DisarmTimer{TimerId{1}}), disarmed = true;
    if (std::holds_alternative<port::TimerFired>(input)) ++fired;
  }
  bool disarmed = false;
  std::uint64_t fired = 0;
  AREAL_FIELDS(disarmed, fired)
};

template <class P>
sim::World hosting(const std::shared_ptr<const sim::Room>& room) {
  std::vector<node::Node> nodes;
  for (const sim::RoomNode& place : room->nodes) {
    nodes.emplace_back(place.id, place.name, std::vector{node::ProtocolBox(P())});
  }
  auto world = sim::World::make_hosting(room, 1, sim::Profile::kCalm, {}, std::move(nodes));
  AREAL_CHECK(world.has_value());
  return std::move(*world);
}

class Hosted {
 public:
  Hosted(const std::shared_ptr<const sim::Room>& room, sim::World world) : room_(room), world_(std::move(world)) {
    world_.start(sink_);
  }
  sim::SimPorts ports(NodeId node) { return {world_, node, sink_}; }
  void start(NodeId node) {
    ports(room_->node(node).starter).start(SlotId{0}, port::StartProcess{OpId{1}, node, 0});
    while (!world_.node(node).alive()) world_.step(sink_);
  }
  void stop(NodeId node) {
    ports(room_->node(node).starter).stop(SlotId{0}, port::StopProcess{node, {}});
    while (world_.node(node).alive()) world_.step(sink_);
  }
  void settle() {
    while (world_.has_event()) world_.step(sink_);
  }
  void pass(Duration duration) {
    const Instant until = world_.now() + duration;
    ports(room_->cluster.store).arm(SlotId{0}, {TimerId{9}, duration});
    while (world_.has_event() && world_.queue().next_time() <= until) world_.step(sink_);
  }
  template <class P>
  const P& protocol(NodeId node) const {
    return *world_.node(node).slots()[0].as<P>();
  }
  [[nodiscard]] const sim::World& world() const { return world_; }

 private:
  std::shared_ptr<const sim::Room> room_;
  port::TraceDigest sink_;
  sim::World world_;
};

// A timer that was due while its node hung is still armed when it goes on: what the node does first may disarm it.
TEST(World, ATimerThatWasDueInAHangCanStillBeDisarmed) {
  config::Scenario scenario = shipped_scenario("smoke", {"links.latency=1ms"});
  config::FaultSpec hang;
  hang.kind = config::FaultKind::kHang;
  hang.node = "router";
  hang.at = 500_us;
  hang.lasts = 1_s;
  scenario.faults = {hang};
  const auto room = room_of(scenario);
  Hosted hosted(room, hosting<Disarmer>(room));
  const Record body = to_record(port::RunEnded{});
  const port::Send message{room->cluster.router, SlotId{0}, port::MessageKind::kOneWay, {}, body};
  hosted.ports(room->cluster.gateway).send(SlotId{0}, message);
  hosted.settle();
  const auto& disarmer = hosted.protocol<Disarmer>(room->cluster.router);
  ASSERT_TRUE(disarmer.disarmed);
  EXPECT_EQ(disarmer.fired, 0U);
  EXPECT_EQ(hosted.protocol<Disarmer>(room->cluster.store).fired, 1U);
}

// What was packed and has not moved is state like any other: a snapshot without it would move other bytes.
TEST(World, WhatWasPackedIsPartOfTheWords) {
  const auto words_after = [](port::ComputeKind what) {
    Hosted hosted(smoke(), hosting<Deaf>(smoke()));
    const NodeId trainer = smoke()->cluster.trainers[0];
    hosted.start(trainer);
    hosted.ports(trainer).start(SlotId{0}, port::StartCompute{OpId{1}, what, 0, {}, 1, 0, 0});
    hosted.settle();
    return words_of(hosted.world());
  };
  EXPECT_EQ(words_after(port::ComputeKind::kFence), words_after(port::ComputeKind::kFence));
  EXPECT_NE(words_after(port::ComputeKind::kPack), words_after(port::ComputeKind::kFence));
}

// Half an engine decodes nothing: tokens that it seems to have made would be trained on.
TEST(World, AnEngineThatLostARankMakesNoTokens) {
  const auto room = room_of(shipped_scenario("smoke", {"rollout.backend=sglang:d2t2"}));
  const NodeId server = room->cluster.engine_ranks[0];
  const NodeId other = room->cluster.engine_ranks[1];
  const auto tokens_of = [&](bool broken) {
    Hosted hosted(room, hosting<Waiter>(room));
    hosted.start(server);
    hosted.start(other);
    if (broken) hosted.stop(other);
    const port::StartCompute generate{OpId{1}, port::ComputeKind::kGenerate, 0, {}, 0, 5, 256};
    hosted.ports(server).start(SlotId{0}, generate);
    hosted.pass(200_ms);
    hosted.ports(server).stop(SlotId{0}, port::StopCompute{OpId{1}});
    hosted.settle();
    EXPECT_EQ(hosted.protocol<Waiter>(server).ends, 1U);
    return hosted.protocol<Waiter>(server).tokens;
  };
  EXPECT_EQ(tokens_of(false), 12U);  // 60 a second.
  EXPECT_EQ(tokens_of(true), 0U);
}

}  // namespace
}  // namespace areal::test
