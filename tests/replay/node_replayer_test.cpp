// A node's protocols repeat what was recorded of them, and whatever was recorded otherwise is found where it lies.
#include "replay/analyse/node_replayer.h"

#include <gtest/gtest.h>

#include "tests/replay/process_parts.h"
#include "tests/replay/simulated_run.h"

namespace areal::testing {
namespace {

// Passes a trace on, except for one line of it.
class Tamperer : public port::TraceSink {
 public:
  explicit Tamperer(port::TraceSink& to) : to_(to) {}

  std::uint64_t change_effect = 0;  // Event whose last word changes.
  std::uint64_t drop_effect = 0;    // Event that is left out.
  std::uint64_t change_state = 0;   // The first state after this event.
  std::uint64_t end_after = UINT64_MAX;

  void on_event(const port::TraceEvent& event) override {
    seq_ = event.seq;
    if (seq_ == drop_effect || seq_ > end_after) return;
    port::TraceEvent changed = event;
    if (seq_ == change_effect) changed.record.words[changed.record.size - 1] += 1;
    to_.on_event(changed);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    if (seq_ > end_after) return;
    const bool changes = change_state != 0 && seq_ >= change_state;
    if (changes) change_state = 0;
    to_.on_state(node, slot, {digest.high, digest.low ^ (changes ? 1 : 0)});
  }
  void on_stream(std::uint32_t stream, std::string_view name) override { to_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override { to_.on_decision(decision); }

 private:
  port::TraceSink& to_;
  std::uint64_t seq_ = 0;
};

class NodeReplayer : public ::testing::Test {
 protected:
  void simulate(const std::string& file) {
    run_ = std::make_unique<SimulatedRun>(file);
    run_->run(all_);
  }
  // Nodes of the room that `reader` holds.
  [[nodiscard]] std::vector<analyse::NodeToReplay> nodes(const record::RunReader& reader,
                                                         const std::vector<KindId>& ruled_kinds = {}) const {
    std::vector<node::Node> built = sim::build_nodes(run_->room());
    std::vector<analyse::NodeToReplay> nodes;
    for (const record::NodeRow& row : reader.nodes()) {
      node::Node& node = built[row.id.value - 1];
      node.start(1);
      nodes.push_back({row.id, {node.slots().begin(), node.slots().end()}, ruled_kinds});
    }
    return nodes;
  }
  template <class Tamper>
  std::vector<analyse::NodeReplay> replay(Tamper&& tamper, const std::vector<KindId>& ruled_kinds = {},
                                          bool finished = true) {
    const ScratchFile file("node_replay.db");
    {
      const auto recorder = run_->open(file.path());
      Tamperer tamperer(*recorder);
      tamper(tamperer);
      run_->run(tamperer);
      if (finished) {
        EXPECT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
      }
    }
    const auto reader = record::RunReader::open(file.path());
    EXPECT_TRUE(reader);
    auto replays = analyse::replay_nodes(**reader, nodes(**reader, ruled_kinds));
    EXPECT_TRUE(replays);
    return *replays;
  }
  // The only node that differs.
  static const analyse::NodeReplay* only_difference(const std::vector<analyse::NodeReplay>& replays) {
    const analyse::NodeReplay* found = nullptr;
    for (const analyse::NodeReplay& replay : replays) {
      if (!replay.difference) continue;
      EXPECT_EQ(found, nullptr);
      found = &replay;
    }
    EXPECT_NE(found, nullptr);
    return found;
  }
  // An effect in the middle of the run whose step had more than one.
  [[nodiscard]] const port::TraceEvent& some_effect() const {
    for (std::size_t i = all_.events.size() / 2; i + 1 < all_.events.size(); ++i) {
      const port::TraceEvent& event = all_.events[i];
      const bool has_next = all_.events[i + 1].cause == event.cause;
      if (event.what == port::TraceWhat::kEffect && event.record.size > 0 && has_next) return event;
    }
    ADD_FAILURE() << "no such effect";
    return all_.events.front();
  }
  [[nodiscard]] std::uint64_t count(port::TraceWhat what) const {
    return static_cast<std::uint64_t>(std::ranges::count(all_.events, what, &port::TraceEvent::what));
  }

  std::unique_ptr<SimulatedRun> run_;
  LineCollector all_;
};

TEST_F(NodeReplayer, EveryNodeOfARunRepeatsItself) {
  simulate("smoke.yaml");
  std::uint64_t inputs = 0;
  std::uint64_t effects = 0;
  std::uint64_t states = 0;
  std::uint64_t incarnations = 0;
  const auto replays = replay([](Tamperer&) {});
  for (const analyse::NodeReplay& replay : replays) {
    EXPECT_FALSE(replay.difference) << replay.difference->recorded << "\n" << replay.difference->replayed;
    EXPECT_EQ(replay.ruled + replay.unseen + replay.cut, 0U);
    inputs += replay.inputs;
    effects += replay.effects;
    states += replay.states;
    incarnations += replay.incarnations;
  }
  EXPECT_EQ(inputs, count(port::TraceWhat::kInput));
  EXPECT_EQ(effects, count(port::TraceWhat::kEffect));
  EXPECT_EQ(states, inputs);
  EXPECT_EQ(incarnations, replays.size() + 1);  // One died and came back.
}

TEST_F(NodeReplayer, PartOfOneProcessRepeatsItself) {
  simulate("smoke.yaml");
  OwnLines lines;
  run_->run(lines);
  const ProcessParts parts(lines, run_->info(), run_->nodes(), run_->room().kinds);
  for (const analyse::NamedReader& part : parts.parts) {
    const auto replays = analyse::replay_nodes(*part.reader, nodes(*part.reader));
    ASSERT_TRUE(replays);
    ASSERT_EQ(replays->size(), 1U);
    EXPECT_FALSE(replays->front().difference) << part.name;
    EXPECT_GE(replays->front().inputs, 1U);
  }
}

TEST_F(NodeReplayer, ChangedEffectIsFound) {
  simulate("smoke.yaml");
  const port::TraceEvent effect = some_effect();
  const auto replays = replay([&](Tamperer& tamperer) { tamperer.change_effect = effect.seq; });
  const analyse::NodeReplay* found = only_difference(replays);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, effect.node);
  EXPECT_EQ(found->difference->seq, effect.seq);
  EXPECT_EQ(found->difference->slot, effect.slot);
  ASSERT_EQ(found->difference->fields.size(), 1U);
  EXPECT_TRUE(found->difference->fields[0].name.starts_with("record."));
  EXPECT_NE(found->difference->fields[0].left, found->difference->fields[0].right);
}

TEST_F(NodeReplayer, ChangedStateIsFound) {
  simulate("smoke.yaml");
  const std::uint64_t input = some_effect().cause;
  const auto replays = replay([&](Tamperer& tamperer) { tamperer.change_state = input; });
  const analyse::NodeReplay* found = only_difference(replays);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, some_effect().node);
  EXPECT_GE(found->difference->seq, input);
  ASSERT_EQ(found->difference->fields.size(), 1U);
  EXPECT_EQ(found->difference->fields[0].name, "state.digest");
}

TEST_F(NodeReplayer, MissingEffectIsFound) {
  simulate("smoke.yaml");
  const port::TraceEvent effect = some_effect();
  // In the middle of a step the next effect stands where it was.
  const auto replays = replay([&](Tamperer& tamperer) { tamperer.drop_effect = effect.seq; });
  const analyse::NodeReplay* found = only_difference(replays);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, effect.node);
  EXPECT_EQ(found->difference->seq, effect.seq + 1);
  // At its end nothing does.
  std::uint64_t last = effect.seq;
  while (all_.events[last].cause == effect.cause && all_.events[last].what == port::TraceWhat::kEffect) ++last;
  const auto at_end = replay([&](Tamperer& tamperer) { tamperer.drop_effect = last; });
  found = only_difference(at_end);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->difference->seq, last - 1);
  EXPECT_EQ(found->difference->recorded, "(nothing)");
}

TEST_F(NodeReplayer, ForeignProtocolDiffersAtOnce) {
  simulate("smoke.yaml");
  const ScratchFile file("foreign_nodes.db");
  const auto recorder = run_->open(file.path());
  run_->run(*recorder);
  ASSERT_TRUE(recorder->finish({.verdict = "held", .counts = {}}));
  const auto reader = record::RunReader::open(file.path());
  auto asked = nodes(**reader);
  std::swap(asked[0].protocols, asked[1].protocols);
  const auto replays = analyse::replay_nodes(**reader, std::move(asked));
  ASSERT_TRUE(replays);
  EXPECT_TRUE((*replays)[0].difference);
  EXPECT_TRUE((*replays)[1].difference);
  EXPECT_FALSE((*replays)[2].difference);
}

TEST_F(NodeReplayer, TruncatedRunIsComparedToItsEnd) {
  simulate("smoke.yaml");
  const port::TraceEvent effect = some_effect();  // More of its step follows.
  const auto replays = replay([&](Tamperer& tamperer) { tamperer.end_after = effect.seq; }, {}, false);
  std::uint64_t cut = 0;
  std::uint64_t inputs = 0;
  for (const analyse::NodeReplay& replay : replays) {
    EXPECT_FALSE(replay.difference);
    cut += replay.cut;
    inputs += replay.inputs;
  }
  EXPECT_EQ(cut, 1U);
  const auto until = std::span(all_.events).first(effect.seq);
  EXPECT_EQ(inputs,
            static_cast<std::uint64_t>(std::ranges::count(until, port::TraceWhat::kInput, &port::TraceEvent::what)));
}

// The rule changes inputs of the controller before they are logged; it repeats what it made of them.
TEST_F(NodeReplayer, RulesOnInputsChangeNothing) {
  simulate("canary.yaml");
  ASSERT_TRUE(std::ranges::any_of(all_.events, [](const port::TraceEvent& event) { return event.rule != 0; }));
  for (const analyse::NodeReplay& replay : replay([](Tamperer&) {})) EXPECT_FALSE(replay.difference);
}

}  // namespace
}  // namespace areal::testing
