// Whatever dies, is lost, late, doubled, flipped or refused: no invariant breaks, and all hold what was published.
//
// Random little rooms with random faults, run to their end with all judges. A failing case shrinks to few faults and a
// small seed; what it prints is the scenario.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "engine/proto/engine_server.h"
#include "engine/proto/gateway.h"
#include "engine/proto/update_receiver.h"
#include "sim/check/judge.h"
#include "sim/check/stuck.h"
#include "tests/unit/world_fixture.h"

namespace areal::test {
namespace {

// Far above what any of these runs takes.
constexpr std::uint64_t kEventLimit = 400'000;
constexpr std::array<const char*, 4> kTrainers{"megatron:d1", "megatron:d2", "megatron:d1t2", "megatron:d2t2"};
constexpr std::array<const char*, 4> kEngines{"sglang:d1t1", "sglang:d2t1", "sglang:d1t2", "sglang:d2t2"};
constexpr std::array<const char*, 5> kMoments{"collective_entered", "apply_started", "applied", "plan_built",
                                              "weights_state"};
constexpr std::array<const char*, 4> kOperations{"pack", "verify", "apply", "fence"};

// Rooms take longer to build than to run: one of each shape, with faults and times put in afterwards.
const sim::Room& shape(std::size_t trainers, std::size_t engines) {
  static std::array<std::shared_ptr<const sim::Room>, 16> rooms;
  auto& room = rooms[trainers * 4 + engines];
  if (room == nullptr) {
    room = room_of(shipped_scenario(
        "smoke",
        {"work.updates=2", "expect.published=0", "rollout.batch=2", "rollout.max_new_tokens=64",
         "faults[0].node=engine.0.rank.0", "faults[0].when.node=engine.0.rank.0",
         std::string("train.backend=") + kTrainers[trainers], std::string("rollout.backend=") + kEngines[engines]}));
  }
  return *room;
}

config::FaultSpec fault(config::FaultKind kind) {
  config::FaultSpec spec;
  spec.kind = kind;
  return spec;
}

config::FaultSpec any_kill(const sim::Room& room) {
  const std::vector<NodeId>& ranks = room.cluster.engine_ranks;
  const std::string name = room.node(ranks[*rc::gen::inRange<std::size_t>(0, ranks.size())]).name;
  config::EventMatch when;
  when.node = name;
  when.kind = kMoments[*rc::gen::inRange<std::size_t>(0, kMoments.size())];
  when.occurrence = *rc::gen::inRange(1U, 4U);
  config::FaultSpec spec = fault(config::FaultKind::kKill);
  spec.node = name;
  spec.when = when;
  spec.after = Duration{*rc::gen::inRange<std::int64_t>(0, 300)} * 1'000'000;
  return spec;
}

// Something that happens by chance, at most twice.
config::FaultSpec chance_of(config::FaultKind kind, const std::string& node, std::uint64_t one_in) {
  config::FaultSpec spec = fault(kind);
  spec.node = node;
  spec.chance = config::Ratio{1, one_in};
  spec.limit = 2;
  return spec;
}

std::vector<config::FaultSpec> any_faults(const sim::Room& room) {
  using config::FaultKind;
  std::vector<config::FaultSpec> faults;
  const int kills = *rc::gen::inRange(0, 3);
  for (int i = 0; i < kills; ++i) faults.push_back(any_kill(room));
  if (*rc::gen::arbitrary<bool>()) {
    faults.push_back(fault(FaultKind::kLoseMessage));
    faults.back().chance = config::Ratio{1, *rc::gen::inRange<std::uint64_t>(20, 200)};
  }
  if (*rc::gen::arbitrary<bool>()) {
    faults.push_back(fault(FaultKind::kDuplicateMessage));
    faults.back().chance = config::Ratio{1, *rc::gen::inRange<std::uint64_t>(2, 50)};
  }
  if (*rc::gen::arbitrary<bool>()) {
    faults.push_back(fault(FaultKind::kDelayMessage));
    faults.back().chance = config::Ratio{1, *rc::gen::inRange<std::uint64_t>(10, 100)};
    faults.back().lasts = Duration{*rc::gen::inRange<std::int64_t>(1, 4'000)} * 1'000'000;
  }
  if (*rc::gen::arbitrary<bool>()) {
    faults.push_back(chance_of(FaultKind::kSlowLink, "*", 10));
    faults.back().factor = *rc::gen::inRange(2U, 1'000U);
    faults.back().lasts = 5_s;
  }
  if (*rc::gen::arbitrary<bool>()) faults.push_back(chance_of(FaultKind::kFlipByte, "engine.*", 4));
  if (*rc::gen::arbitrary<bool>()) faults.push_back(chance_of(FaultKind::kNoMemory, "*", 6));
  if (*rc::gen::arbitrary<bool>()) {
    faults.push_back(chance_of(FaultKind::kFailCompute, "*", 6));
    faults.back().what = kOperations[*rc::gen::inRange<std::size_t>(0, kOperations.size())];
  }
  return faults;
}

std::shared_ptr<const sim::Room> any_room() {
  const sim::Room& plain = shape(*rc::gen::inRange<std::size_t>(0, 4), *rc::gen::inRange<std::size_t>(0, 4));
  auto room = std::make_shared<sim::Room>(plain);
  config::Scenario& scenario = room->scenario;
  scenario.faults = any_faults(plain);
  scenario.work.request_timeout = Duration{*rc::gen::inRange<std::int64_t>(1, 10)} * 1'000'000'000;
  scenario.work.update_timeout = Duration{*rc::gen::inRange<std::int64_t>(5, 60)} * 1'000'000'000;
  scenario.work.init_timeout = Duration{*rc::gen::inRange<std::int64_t>(10, 60)} * 1'000'000'000;
  scenario.work.update_retries = *rc::gen::inRange(0U, 3U);
  scenario.rollout.pause = *rc::gen::element(port::PauseMode::kAbortResubmit, port::PauseMode::kInPlace);
  scenario.budget.engines_down_max = *rc::gen::inRange(1U, 4U);
  scenario.budget.heal_at = 300_s;
  return room;
}

// All judges, and the versions in the order of their publication.
class Watch final : public port::TraceSink {
 public:
  explicit Watch(const sim::Room& room) : applied(room.nodes.size()), judges_(sim::make_judges(room.setup)) {}

  void on_event(const port::TraceEvent& event) override {
    judges_.on_event(event, violations);
    if (event.body.kind == port::Applied::kKind) applied[event.node.value - 1] = event.incarnation;
    if (event.record.kind != port::Note::kKind || event.body.kind != port::VersionPublished::kKind) return;
    dispatch_record<port::VersionPublished>(event.body, [&](const auto& note) {
      published.push_back(note.version);
      attempts.push_back(note.attempt);
    });
  }
  void on_state(NodeId /*node*/, SlotId /*slot*/, const Digest128& /*digest*/) override {}
  void on_stream(std::uint32_t /*stream*/, std::string_view /*name*/) override {}
  void on_decision(const port::Decision& /*decision*/) override {}
  void at_end(bool finished) { judges_.at_end(finished, violations); }

  sim::Violations violations;
  std::vector<Version> published;
  std::vector<Attempt> attempts;     // Under which each was published.
  std::vector<Incarnation> applied;  // The process that last applied something, by node; 0: none did.

 private:
  sim::Judges judges_;
};

std::string words_of_waits(const sim::World& world) {
  std::string words;
  for (const sim::RoomWait& wait : world.waits()) {
    words += world.room().node(wait.from).name + ": " + wait.what + "\n";
  }
  return words;
}

// Of a run that completed: nobody is left behind but processes that started after the last update.
void check_end(const sim::World& world, const Watch& watch) {
  const proto::ClusterMap& cluster = world.room().cluster;
  const auto* gateway = world.node(cluster.gateway).slots()[proto::kGatewaySlot.value].as<proto::Gateway>();
  RC_ASSERT(watch.published.size() == world.room().scenario.work.updates);
  RC_ASSERT(gateway->version() == watch.published.back());
  RC_ASSERT(gateway->registry().get(proto::PairId{1}) == nullptr);
  RC_ASSERT(gateway->registry().list().empty());
  for (std::uint32_t rank = 0; rank < cluster.infer_world(); ++rank) {
    const node::Node& node = world.node(cluster.engine_ranks[rank]);
    if (!node.alive()) continue;
    if (rank % cluster.engine_world == 0) {
      RC_ASSERT(!node.slots()[proto::kServerSlot.value].as<proto::EngineServer>()->paused());
    }
    const auto* receiver = node.slots()[proto::kReceiverSlot.value].as<proto::UpdateReceiver>();
    if (receiver->quarantined() || node.incarnation() != watch.applied[node.id().value - 1]) continue;
    RC_ASSERT(receiver->member().version() == gateway->version());
  }
}

RC_GTEST_PROP(Update, HostileRoomsEndWhole, (std::uint64_t seed)) {
  const std::shared_ptr<const sim::Room> room = any_room();
  RC_LOG() << config::resolved_yaml(room->scenario);
  auto made = sim::World::make(room, seed, sim::Profile::kCalm, {});
  RC_ASSERT(made.has_value());
  sim::World& world = *made;
  Watch watch(*room);
  world.start(watch);
  while (world.has_event() && !world.ended() && watch.violations.empty() && world.events() < kEventLimit) {
    world.step(watch);
  }
  watch.at_end(world.ended().has_value());
  for (const sim::Violation& violation : watch.violations.all()) {
    RC_FAIL(std::string(sim::info_of(violation.invariant).name) + ": " + violation.message);
  }
  if (!world.ended()) RC_FAIL("nobody goes on:\n" + words_of_waits(world));
  for (std::size_t i = 1; i < watch.published.size(); ++i) RC_ASSERT(watch.published[i] > watch.published[i - 1]);
  RC_TAG(std::string(areal::to_text(world.ended()->end)));
  if (world.ended()->end == port::RunEnd::kCompleted) check_end(world, watch);
}

// A fence that failed proves nothing: the members must not meet as if the weights were there.
TEST(Update, AFailedFenceFailsTheAttempt) {
  config::Scenario scenario = shipped_scenario("smoke");
  config::FaultSpec failure = fault(config::FaultKind::kFailCompute);
  failure.node = "engine.0.rank.0";
  failure.what = "fence";
  failure.chance = config::Ratio{1, 1};
  failure.limit = 1;
  scenario.faults = {failure};
  const std::shared_ptr<const sim::Room> room = room_of(scenario);
  sim::World world = world_of(room, 1);
  Watch watch(*room);
  world.start(watch);
  while (world.has_event() && !world.ended()) world.step(watch);
  watch.at_end(world.ended().has_value());
  for (const sim::Violation& violation : watch.violations.all()) ADD_FAILURE() << violation.message;
  EXPECT_EQ(watch.published, (std::vector<Version>{1, 2, 3}));
  EXPECT_EQ(watch.attempts, (std::vector<Attempt>{2, 1, 1}));
}

}  // namespace
}  // namespace areal::test
