// Hosts the toy replicator in nodes with fake ports: any order, losses, death, copies, snapshots and fault rules.
#include "tests/seam/toy_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "engine/node/node.h"
#include "tests/seam/fake_ports.h"

namespace areal::seam {
namespace {

constexpr NodeId kLeader{1};
constexpr NodeId kFirst{2};
constexpr NodeId kSecond{3};
constexpr NodeId kThird{4};
constexpr NodeId kClient{99};

// Picks like a die, equal everywhere.
class Die {
 public:
  explicit Die(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t bound) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>((state_ >> 33U) % bound);
  }

 private:
  std::uint64_t state_;
};

std::vector<node::Node> make_nodes() {
  const std::vector<NodeId> followers{kFirst, kSecond, kThird};
  std::vector<node::Node> nodes;
  nodes.emplace_back(kLeader, "leader", std::vector{node::ProtocolBox(Leader(followers))});
  for (const NodeId id : followers) {
    nodes.emplace_back(id, "follower", std::vector{node::ProtocolBox(Follower(kLeader))});
  }
  return nodes;
}

const Leader& leader_of(World& world) { return *world.find(kLeader)->slots()[0].as<Leader>(); }
const Follower& follower_of(World& world, NodeId id) { return *world.find(id)->slots()[0].as<Follower>(); }
Digest128 digest_of(World& world, NodeId id) { return world.find(id)->slots()[0].digest(); }

bool is_message(const Pending& pending) { return std::holds_alternative<port::MessageIn>(pending.delivery.input); }

// A timer happens only when nothing else can, or when the die says so.
std::size_t pick(const World& world, Die& die) {
  const std::size_t index = die.below(world.pending.size());
  if (!world.pending[index].is_timer || die.below(4) == 0) return index;
  return die.below(world.pending.size());
}

// Runs in the order of the die until nothing is pending. Loses up to `losses` messages between nodes.
void run(World& world, Die& die, int losses = 0, port::FaultHook* hook = nullptr, int most_steps = 2000) {
  for (int steps = 0; !world.pending.empty() && steps < most_steps; ++steps) {
    const std::size_t index = pick(world, die);
    const bool is_lost = losses > 0 && is_message(world.pending[index]) && die.below(2) == 0 &&
                         std::get<port::MessageIn>(world.pending[index].delivery.input).from != kClient;
    if (is_lost) {
      --losses;
      world.pending.erase(world.pending.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      happen(world, index, hook);
    }
  }
}

World started_world(Die& die) {
  World world;
  world.nodes = make_nodes();
  start_node(world, kLeader, 29500);
  run(world, die);
  return world;
}

void ask(World& world, std::uint64_t request, std::uint64_t key, std::uint64_t value) {
  send_from_client(world, kClient, kLeader, RequestId{request}, to_record(SetValue{key, value}));
}

SetDone last_answer(const World& world) { return from_record<SetDone>(world.outside.back().body); }

std::vector<std::uint64_t> saved(const node::Node& node) {
  StateWriter writer;
  node.save(writer);
  return {writer.words().begin(), writer.words().end()};
}

void expect_equal(World& left, World& right) {
  ASSERT_EQ(left.nodes.size(), right.nodes.size());
  for (std::size_t i = 0; i < left.nodes.size(); ++i) EXPECT_EQ(saved(left.nodes[i]), saved(right.nodes[i]));
  EXPECT_EQ(left.states, right.states);
  EXPECT_EQ(left.trace.size(), right.trace.size());
  EXPECT_EQ(left.now, right.now);
}

// A rule as a function, for tests.
class Hook final : public port::FaultHook {
 public:
  using Rule = std::function<void(const port::Passing&, std::vector<port::Passing>&)>;
  explicit Hook(Rule rule) : rule_(std::move(rule)) {}
  void on_pass(const port::Passing& passing, std::vector<port::Passing>& out) override { rule_(passing, out); }

 private:
  Rule rule_;
};

TEST(Toy, EveryOrderCommitsEverywhere) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Die die(seed);
    World world = started_world(die);
    ask(world, 1, 7, 70);
    run(world, die);
    ask(world, 2, 7, 71);
    run(world, die);
    ASSERT_EQ(world.outside.size(), 2U) << seed;
    EXPECT_EQ(last_answer(world).outcome, port::Outcome::kOk);
    for (const NodeId id : {kFirst, kSecond, kThird}) EXPECT_EQ(*follower_of(world, id).values().find(7), 71U);
    EXPECT_EQ(*leader_of(world).values().find(7), 71U);
  }
}

TEST(Toy, LostMessagesAreAskedAgain) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Die die(seed);
    World world = started_world(die);
    ask(world, 1, 7, 70);
    run(world, die, 6);
    ASSERT_EQ(world.outside.size(), 1U) << seed;
    EXPECT_EQ(last_answer(world).outcome, port::Outcome::kOk);
  }
}

// Followers differ in nothing but their rank once a round is committed, whatever way they took.
TEST(Toy, EqualStatesHaveEqualDigests) {
  Die die(3);
  World world = started_world(die);
  EXPECT_EQ(digest_of(world, kFirst), digest_of(world, kSecond));
  ask(world, 1, 7, 70);
  run(world, die, 3);
  EXPECT_EQ(digest_of(world, kFirst), digest_of(world, kSecond));
  EXPECT_EQ(digest_of(world, kFirst), digest_of(world, kThird));
  const Digest128 before = digest_of(world, kFirst);
  ask(world, 2, 8, 80);
  run(world, die, 3);
  EXPECT_NE(digest_of(world, kFirst), before);
}

TEST(Toy, DeathOfAFollowerFailsTheRoundAndTheNextOneSucceeds) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Die die(seed);
    World world = started_world(die);
    ask(world, 1, 7, 70);
    run(world, die, 0, nullptr, static_cast<int>(seed % 40));
    kill_node(world, kSecond, kLeader);
    run(world, die);
    ASSERT_EQ(world.outside.size(), 1U) << seed;
    ask(world, 2, 8, 80);
    run(world, die, 2);
    ASSERT_EQ(world.outside.size(), 2U) << seed;
    EXPECT_EQ(last_answer(world).outcome, port::Outcome::kOk) << seed;
    EXPECT_EQ(leader_of(world).member_count(), 2U);
    EXPECT_EQ(*follower_of(world, kThird).values().find(8), 80U);
  }
}

TEST(Toy, LoadedNodeEqualsTheSavedOne) {
  for (int steps = 0; steps < 40; ++steps) {
    Die die(11);
    World world = started_world(die);
    ask(world, 1, 7, 70);
    run(world, die, 1, nullptr, steps);
    std::vector<node::Node> loaded = make_nodes();
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      const std::vector<std::uint64_t> words = saved(world.nodes[i]);
      StateReader reader(words);
      ASSERT_TRUE(loaded[i].load(reader));
      EXPECT_TRUE(reader.at_end());
      EXPECT_EQ(saved(loaded[i]), words);
      EXPECT_EQ(loaded[i].slots()[0].digest(), world.nodes[i].slots()[0].digest());
    }
    World other = world;
    other.nodes = loaded;
    Die left(5);
    Die right(5);
    run(world, left);
    run(other, right);
    expect_equal(world, other);
  }
}

TEST(Toy, DamagedWordsAreNotLoaded) {
  Die die(11);
  World world = started_world(die);
  std::vector<std::uint64_t> words = saved(world.nodes[0]);
  words.resize(words.size() / 2);
  StateReader reader(words);
  EXPECT_FALSE(make_nodes()[0].load(reader));
}

TEST(Toy, BothCopiesOfARunGoOnEqually) {
  for (int steps = 0; steps < 40; ++steps) {
    Die die(17);
    World world = started_world(die);
    ask(world, 1, 7, 70);
    run(world, die, 1, nullptr, steps);
    World copy = world;
    Die left(5);
    Die right(5);
    run(world, left, 2);
    run(copy, right, 2);
    expect_equal(world, copy);
  }
}

TEST(Toy, HookDropsAMessageOnce) {
  int dropped = 0;
  Hook hook([&](const port::Passing& passing, std::vector<port::Passing>& out) {
    if (!passing.is_input && passing.body.kind == Stage::kKind && dropped < 2) {
      ++dropped;
    } else {
      out.push_back(passing);
    }
  });
  Die die(23);
  World world = started_world(die);
  ask(world, 1, 7, 70);
  run(world, die, 0, &hook);
  EXPECT_EQ(dropped, 2);
  EXPECT_EQ(last_answer(world).outcome, port::Outcome::kOk);
}

TEST(Toy, HookRepeatsAMessage) {
  Hook hook([](const port::Passing& passing, std::vector<port::Passing>& out) {
    out.push_back(passing);
    if (passing.is_input && passing.body.kind != 0) {
      out.push_back(passing);
      out.back().rule = 5;
    }
  });
  Die die(29);
  World world = started_world(die);
  ask(world, 1, 7, 70);
  run(world, die, 0, &hook);
  EXPECT_EQ(last_answer(world).outcome, port::Outcome::kOk);
  EXPECT_EQ(leader_of(world).phase(), LeaderPhase::kIdle);
  const auto by_rule = [](const port::TraceEvent& event) { return event.rule == 5; };
  EXPECT_GT(std::ranges::count_if(world.trace, by_rule), 0);
}

// The rule finds its field by name, as a scenario's rule does.
TEST(Toy, HookChangesAMessage) {
  KindTable kinds;
  port::add_kinds(kinds);
  add_toy_kinds(kinds);
  const std::size_t word = find_field(*kinds.find(Stage::kKind), "value")->word;
  Hook hook([&](const port::Passing& passing, std::vector<port::Passing>& out) {
    out.push_back(passing);
    if (passing.is_input || passing.body.kind != Stage::kKind) return;
    if (from_record<port::Send>(passing.record).to != kSecond) return;
    out.back().body.words.at(word) = 666;
    out.back().rule = 3;
  });
  Die die(31);
  World world = started_world(die);
  ask(world, 1, 7, 70);
  run(world, die, 0, &hook);
  EXPECT_EQ(*follower_of(world, kFirst).values().find(7), 70U);
  EXPECT_EQ(*follower_of(world, kSecond).values().find(7), 666U);
  EXPECT_NE(digest_of(world, kFirst), digest_of(world, kSecond));
}

TEST(Toy, HookChangesTheTagOfABarrierAndTheRoundFails) {
  KindTable kinds;
  port::add_kinds(kinds);
  const std::size_t word = find_field(*kinds.find(port::PostBatch::kKind), "tag")->word;
  Hook hook([&](const port::Passing& passing, std::vector<port::Passing>& out) {
    out.push_back(passing);
    if (passing.record.kind == port::PostBatch::kKind && passing.node == kFirst) out.back().record.words.at(word) = 9;
  });
  Die die(37);
  World world = started_world(die);
  ask(world, 1, 7, 70);
  run(world, die, 0, &hook);
  EXPECT_EQ(last_answer(world).outcome, port::Outcome::kMismatch);
  EXPECT_EQ(follower_of(world, kSecond).values().find(7), nullptr);
}

TEST(Toy, HookPutsOffInputsAndEffects) {
  Hook hook([](const port::Passing& passing, std::vector<port::Passing>& out) {
    out.push_back(passing);
    const bool is_late = passing.is_input ? passing.body.kind == Staged::kKind : passing.body.kind == Commit::kKind;
    if (!is_late) return;
    out.back().delay = 30_ms;
    out.back().rule = 4;
  });
  Die die(41);
  World world = started_world(die);
  ask(world, 1, 7, 70);
  for (int tries = 0; tries < 20 && world.outside.empty(); ++tries) {
    run(world, die, 0, &hook, 20);
    flush_deferred(world, &hook);
  }
  ASSERT_EQ(world.outside.size(), 1U);
  EXPECT_EQ(last_answer(world).outcome, port::Outcome::kOk);
}

// Whatever a stranger sends is refused and never fails a check.
TEST(Toy, ForeignMessagesAreRefused) {
  Die die(43);
  World world = started_world(die);
  send_from_client(world, kClient, kLeader, RequestId{1}, to_record(Staged{5}));
  send_from_client(world, kClient, kFirst, RequestId{2}, to_record(Stage{}));
  send_from_client(world, kClient, kLeader, RequestId{3}, to_record(port::Refused{}));
  run(world, die);
  const auto is_refusal = [](const port::TraceEvent& event) {
    return event.what == port::TraceWhat::kEffect && event.body.kind == port::Refused::kKind;
  };
  EXPECT_EQ(std::ranges::count_if(world.trace, is_refusal), 3);
}

}  // namespace
}  // namespace areal::seam
