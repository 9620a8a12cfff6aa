// Rewrite rules: what is matched, what becomes of it, and what a wrong rule is told.
#include "sim/fault/rule_hook.h"

#include <gtest/gtest.h>

#include "engine/port/types.h"

namespace areal::sim {
namespace {

using config::EventMatch;
using config::RuleAct;
using config::RuleSpec;
using port::Passing;

struct Ask {
  std::uint64_t sample = 0;
  Version version = 0;
  AREAL_RECORD(0x7001, "ask", sample, version)
};
struct Answer {
  std::uint64_t sample = 0;
  port::Outcome outcome = port::Outcome::kOk;
  AREAL_RECORD(0x7002, "answer", sample, outcome)
};

class RuleHookTest : public testing::Test {
 protected:
  RuleHookTest() {
    port::add_kinds(kinds);
    kinds.add<Ask, Answer>();
    directory = {
        {}, {"trainer.0", {"sender"}}, {"engine.0", {"receiver", "server"}}, {"engine.1", {"receiver", "server"}}};
  }

  RuleHook hook_of(const std::vector<RuleSpec>& specs) {
    auto hook = RuleHook::make(specs, kinds, directory);
    EXPECT_TRUE(hook.has_value()) << (hook ? "" : hook.error().detail);
    return hook ? *hook : RuleHook();
  }
  std::string error_of(const RuleSpec& spec) {
    const auto hook = RuleHook::make(std::vector{spec}, kinds, directory);
    EXPECT_FALSE(hook.has_value());
    return hook ? "" : hook.error().detail;
  }

  KindTable kinds;
  NodeDirectory directory;
};

template <class T>
Passing effect(NodeId node, const T& value, const Record& body = {}) {
  Passing passing{.node = node, .slot = {0}, .delay = {}, .record = to_record(value), .body = body};
  return passing;
}
template <class T>
Passing input(NodeId node, const T& value, const Record& body = {}) {
  Passing passing = effect(node, value, body);
  passing.is_input = true;
  return passing;
}
Passing note_of_version(NodeId node, Version version) {
  return effect(node, port::Note{}, to_record(port::VersionPublished{.version = version}));
}
Passing ask(NodeId node, std::uint64_t sample) {
  return input(
      node,
      port::MessageIn{.from = {1}, .from_slot = {0}, .kind = port::MessageKind::kRequest, .request = {9}, .body = {}},
      to_record(Ask{.sample = sample}));
}

// What happens instead of `passing`.
std::vector<Passing> pass(RuleHook& hook, const Passing& passing) {
  std::vector<Passing> out;
  hook.on_pass(passing, out);
  std::erase_if(out, [](const Passing& item) { return item.dropped; });
  return out;
}

RuleSpec rule(RuleAct act, EventMatch match) {
  RuleSpec spec;
  spec.act = act;
  spec.match = std::move(match);
  spec.line = 3;
  return spec;
}
EventMatch match_of(std::string kind, std::vector<config::FieldValue> fields = {}, std::uint32_t occurrence = 0) {
  EventMatch match;
  match.kind = std::move(kind);
  match.fields = std::move(fields);
  match.occurrence = occurrence;
  match.line = 2;
  return match;
}
EventMatch input_match(std::string kind) {
  EventMatch match = match_of(std::move(kind));
  match.is_input = true;
  return match;
}

TEST_F(RuleHookTest, WhatNoRuleWantsPassesAsItIs) {
  RuleHook hook = hook_of({rule(RuleAct::kDrop, match_of("arm_timer"))});
  const std::vector<Passing> out = pass(hook, effect({1}, port::DisarmTimer{{4}}));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].rule, 0U);
  EXPECT_EQ(out[0].record, to_record(port::DisarmTimer{{4}}));
}

// A node asks this first, and does not ask on_pass() where it is true.
TEST_F(RuleHookTest, LeavesAloneOnlyWhatNoRuleAndNoHeldEventIsAbout) {
  RuleHook hook = hook_of({rule(RuleAct::kSwap, match_of("arm_timer", {}, 1)), rule(RuleAct::kDrop, match_of("ask"))});
  EXPECT_TRUE(hook.leaves_alone(false, port::DisarmTimer::kKind, 0));
  EXPECT_FALSE(hook.leaves_alone(false, port::ArmTimer::kKind, 0));
  EXPECT_FALSE(hook.leaves_alone(true, port::MessageIn::kKind, Ask::kKind));
  EXPECT_TRUE(hook.leaves_alone(true, port::MessageIn::kKind, Answer::kKind));
  EXPECT_TRUE(hook.leaves_alone(true, port::Started::kKind, 0));
  pass(hook, effect({1}, port::ArmTimer{{1}, {}}));
  EXPECT_FALSE(hook.leaves_alone(true, port::Started::kKind, 0));
}

TEST_F(RuleHookTest, OnlyTheNthFittingEventAtFittingNodesIsDropped) {
  EventMatch match = match_of("arm_timer", {{"timer", "7", 2}}, 2);
  match.node = "engine.*";
  RuleHook hook = hook_of({rule(RuleAct::kDrop, match)});
  EXPECT_EQ(pass(hook, effect({1}, port::ArmTimer{{7}, {}})).size(), 1U);  // Another node.
  EXPECT_EQ(pass(hook, effect({2}, port::ArmTimer{{8}, {}})).size(), 1U);  // Another timer.
  EXPECT_EQ(pass(hook, effect({2}, port::ArmTimer{{7}, {}})).size(), 1U);  // The first.
  EXPECT_EQ(pass(hook, effect({3}, port::ArmTimer{{7}, {}})).size(), 0U);  // The second.
  EXPECT_EQ(pass(hook, effect({3}, port::ArmTimer{{7}, {}})).size(), 1U);  // The third.
  EXPECT_EQ(hook.acted(1), 1U);
}

// A judge must be able to tell what a rule took away from what never was.
TEST_F(RuleHookTest, WhatIsTakenAwayIsStillShown) {
  RuleHook hook =
      hook_of({rule(RuleAct::kDrop, match_of("arm_timer")), rule(RuleAct::kComplete, match_of("lease_port"))});
  std::vector<Passing> out;
  hook.on_pass(effect({1}, port::ArmTimer{{7}, {}}), out);
  hook.on_pass(effect({1}, port::LeasePort{{3}}), out);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_TRUE(out[0].dropped);
  EXPECT_EQ(out[0].rule, 1U);
  EXPECT_EQ(out[0].record.kind, port::ArmTimer::kKind);
  EXPECT_TRUE(out[1].dropped);
  EXPECT_FALSE(out[2].dropped);
  EXPECT_EQ(out[2].record.kind, port::PortLeased::kKind);
}

TEST_F(RuleHookTest, FieldsAreFoundOnTheBodyThenOnTheCarrier) {
  EventMatch match = input_match("ask");
  match.fields = {{"sample", "5", 2}, {"from", "trainer.0", 2}, {"kind", "request", 2}};
  RuleHook hook = hook_of({rule(RuleAct::kDrop, match)});
  EXPECT_EQ(pass(hook, ask({2}, 4)).size(), 1U);
  EXPECT_EQ(pass(hook, ask({2}, 5)).size(), 0U);
  Passing other = ask({2}, 5);
  other.record.words[0] = 3;  // From engine.1.
  EXPECT_EQ(pass(hook, other).size(), 1U);
  EXPECT_EQ(pass(hook, effect({2}, port::Send{}, to_record(Ask{.sample = 5}))).size(), 1U);  // Going out.
}

TEST_F(RuleHookTest, ACarrierKindReachesIntoItsBodies) {
  RuleHook hook = hook_of({rule(RuleAct::kDrop, match_of("note", {{"version", "4", 2}}))});
  EXPECT_EQ(pass(hook, note_of_version({1}, 3)).size(), 1U);
  EXPECT_EQ(pass(hook, note_of_version({1}, 4)).size(), 0U);
}

TEST_F(RuleHookTest, RepeatAndDelayCarryTheRulesNumber) {
  RuleSpec late = rule(RuleAct::kDelay, match_of("disarm_timer"));
  late.delay = 5_ms;
  RuleHook hook = hook_of({rule(RuleAct::kRepeat, match_of("arm_timer")), late});
  const std::vector<Passing> twice = pass(hook, effect({1}, port::ArmTimer{{1}, {}}));
  ASSERT_EQ(twice.size(), 2U);
  EXPECT_EQ(twice[0].rule, 0U);
  EXPECT_EQ(twice[1].rule, 1U);
  EXPECT_EQ(twice[0].record, twice[1].record);
  const std::vector<Passing> delayed = pass(hook, effect({1}, port::DisarmTimer{{1}}));
  ASSERT_EQ(delayed.size(), 1U);
  EXPECT_EQ(delayed[0].rule, 2U);
  EXPECT_EQ(delayed[0].delay, 5_ms);
}

TEST_F(RuleHookTest, SwapExchangesWithTheNextAtTheSamePlace) {
  RuleHook hook = hook_of({rule(RuleAct::kSwap, match_of("arm_timer", {}, 1))});
  EXPECT_TRUE(pass(hook, effect({1}, port::ArmTimer{{1}, {}})).empty());
  EXPECT_EQ(hook.held(), 1U);
  EXPECT_EQ(pass(hook, effect({2}, port::ArmTimer{{2}, {}})).size(), 1U);  // Another node.
  const std::vector<Passing> out = pass(hook, effect({1}, port::ArmTimer{{3}, {}}));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(from_record<port::ArmTimer>(out[0].record).timer, TimerId{3});
  EXPECT_EQ(from_record<port::ArmTimer>(out[1].record).timer, TimerId{1});
  EXPECT_EQ(out[0].rule, 1U);
  EXPECT_EQ(hook.held(), 0U);
}

// What a dead process had sent or was to get must not reach its successor.
TEST_F(RuleHookTest, AHeldEventIsForgottenWhenItsProcessStartsAnew) {
  RuleHook hook = hook_of({rule(RuleAct::kSwap, match_of("arm_timer", {}, 1))});
  pass(hook, effect({1}, port::ArmTimer{{1}, {}}));
  pass(hook, input({1}, port::Started{.incarnation = 2}));
  EXPECT_EQ(hook.held(), 0U);
}

TEST_F(RuleHookTest, SetTakesLiteralsOtherFieldsAndProbes) {
  RuleSpec spec = rule(RuleAct::kSet, match_of("post_batch"));
  spec.set = {{"tag", "7", 3},
              {"storage_dtype", "field:dtype", 3},
              {"dtype", "field:storage_dtype", 3},
              {"version", "node.version_published.version", 3},
              {"value", "node.self.version_published.bytes", 3}};
  RuleHook hook = hook_of({spec});
  const port::PostBatch batch{.group = {},
                              .batch = {},
                              .version = 1,
                              .buffer = {},
                              .dtype = DType::kBf16,
                              .storage_dtype = DType::kF32,
                              .value = 3};
  // No note yet: what a probe would say stays as it is.
  port::PostBatch out = from_record<port::PostBatch>(pass(hook, effect({2}, batch))[0].record);
  EXPECT_EQ(out.tag, 7U);
  EXPECT_EQ(out.dtype, DType::kF32);
  EXPECT_EQ(out.storage_dtype, DType::kBf16);
  EXPECT_EQ(out.version, 1U);
  EXPECT_EQ(out.value, 3U);

  pass(hook, effect({2}, port::Note{}, to_record(port::VersionPublished{.version = 5, .bytes = 50})));
  pass(hook, effect({1}, port::Note{}, to_record(port::VersionPublished{.version = 6, .bytes = 60})));
  out = from_record<port::PostBatch>(pass(hook, effect({2}, batch))[0].record);
  EXPECT_EQ(out.version, 6U);  // The latest anywhere.
  EXPECT_EQ(out.value, 50U);   // The latest at this node.
}

TEST_F(RuleHookTest, FailWritesABadOutcome) {
  RuleSpec timed_out = rule(RuleAct::kFail, match_of("batch_done"));
  timed_out.set = {{"outcome", "timed_out", 3}};
  RuleHook hook = hook_of({rule(RuleAct::kFail, match_of("compute_done")), timed_out});
  const Passing failed = pass(hook, input({2}, port::ComputeDone{.op = {4}, .digest = {}}))[0];
  EXPECT_EQ(from_record<port::ComputeDone>(failed.record).outcome, port::Outcome::kFailed);
  EXPECT_EQ(from_record<port::ComputeDone>(failed.record).op, OpId{4});
  const Passing late = pass(hook, input({2}, port::BatchDone{.group = {}, .batch = {}, .peer = {}}))[0];
  EXPECT_EQ(from_record<port::BatchDone>(late.record).outcome, port::Outcome::kTimedOut);
}

TEST_F(RuleHookTest, AnEffectThatFailsOrCompletesIsAnsweredInstead) {
  RuleSpec complete = rule(RuleAct::kComplete, match_of("reserve_buffer"));
  RuleHook hook = hook_of({rule(RuleAct::kFail, match_of("start_compute", {{"what", "apply", 2}})), complete});
  const std::vector<Passing> failed = pass(
      hook, effect({2}, port::StartCompute{.op = {4}, .what = port::ComputeKind::kApply, .version = 3, .buffer = {}}));
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_TRUE(failed[0].is_input);
  const auto done = from_record<port::ComputeDone>(failed[0].record);
  EXPECT_EQ(done.op, OpId{4});
  EXPECT_EQ(done.what, port::ComputeKind::kApply);
  EXPECT_EQ(done.version, 3U);
  EXPECT_EQ(done.outcome, port::Outcome::kFailed);
  const Passing ready = pass(hook, effect({2}, port::ReserveBuffer{.buffer = {8}, .bytes = 10}))[0];
  EXPECT_EQ(ready.record, to_record(port::BufferReady{.buffer = {8}}));
  EXPECT_EQ(ready.rule, 2U);
}

TEST_F(RuleHookTest, ARequestIsAnsweredOnEitherSide) {
  RuleSpec at_server = rule(RuleAct::kComplete, input_match("ask"));
  at_server.emit_kind = "answer";
  at_server.set = {{"outcome", "refused", 3}};
  RuleHook server = hook_of({at_server});
  const std::vector<Passing> sent = pass(server, ask({2}, 5));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_FALSE(sent[0].is_input);
  const auto send = from_record<port::Send>(sent[0].record);
  EXPECT_EQ(send.to, NodeId{1});
  EXPECT_EQ(send.kind, port::MessageKind::kReply);
  EXPECT_EQ(send.request, RequestId{9});
  EXPECT_EQ(from_record<Answer>(sent[0].body).sample, 5U);
  EXPECT_EQ(from_record<Answer>(sent[0].body).outcome, port::Outcome::kRefused);

  RuleSpec at_client = rule(RuleAct::kComplete, match_of("ask"));
  at_client.emit_kind = "answer";
  RuleHook client = hook_of({at_client});
  const port::Send request{.to = {2}, .to_slot = {1}, .kind = port::MessageKind::kRequest, .request = {9}, .body = {}};
  const std::vector<Passing> got = pass(client, effect({1}, request, to_record(Ask{.sample = 5})));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(got[0].is_input);
  const auto message = from_record<port::MessageIn>(got[0].record);
  EXPECT_EQ(message.from, NodeId{2});
  EXPECT_EQ(message.from_slot, SlotId{1});
  EXPECT_EQ(message.kind, port::MessageKind::kReply);
  EXPECT_EQ(message.request, RequestId{9});
  EXPECT_EQ(got[0].body, to_record(Answer{.sample = 5}));
}

TEST_F(RuleHookTest, EmitMakesSomethingElsewhere) {
  RuleSpec spec = rule(RuleAct::kEmit, input_match("ask"));
  spec.emit_kind = "ask";
  spec.emit_node = "engine.1";
  spec.emit_slot = "server";
  spec.emit_fields = {{"from", "trainer.0", 3}, {"sample", "field:sample", 3}, {"version", "4", 3}};
  RuleHook hook = hook_of({spec});
  const std::vector<Passing> out = pass(hook, ask({2}, 5));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].rule, 0U);
  EXPECT_EQ(out[0].body, ask({2}, 5).body);
  EXPECT_EQ(out[1].node, NodeId{3});
  EXPECT_EQ(out[1].slot, SlotId{1});
  EXPECT_TRUE(out[1].is_input);
  EXPECT_EQ(out[1].rule, 1U);
  EXPECT_EQ(from_record<port::MessageIn>(out[1].record).from, NodeId{1});
  EXPECT_EQ(from_record<port::MessageIn>(out[1].record).kind, port::MessageKind::kOneWay);
  EXPECT_EQ(out[1].body, to_record(Ask{.sample = 5, .version = 4}));
}

TEST_F(RuleHookTest, ALaterRuleSeesWhatAnEarlierOneLeft) {
  RuleSpec set = rule(RuleAct::kSet, match_of("arm_timer", {{"timer", "1", 2}}));
  set.set = {{"timer", "2", 3}};
  RuleHook hook = hook_of({set, rule(RuleAct::kDrop, match_of("arm_timer", {{"timer", "2", 2}}))});
  EXPECT_TRUE(pass(hook, effect({1}, port::ArmTimer{{1}, {}})).empty());
}

TEST_F(RuleHookTest, WordsAndBackGoOnFromTheSameCounts) {
  RuleSpec set = rule(RuleAct::kSet, match_of("post_batch"));
  set.set = {{"version", "node.version_published.version", 3}};
  const std::vector<RuleSpec> specs{rule(RuleAct::kDrop, match_of("disarm_timer", {}, 2)),
                                    rule(RuleAct::kSwap, match_of("arm_timer")), set};
  RuleHook hook = hook_of(specs);
  pass(hook, effect({1}, port::DisarmTimer{{1}}));
  pass(hook, effect({1}, port::ArmTimer{{1}, {}}));
  pass(hook, note_of_version({1}, 6));
  StateWriter words;
  hook.save(words);
  RuleHook back = hook_of(specs);
  StateReader reader(words.words());
  ASSERT_TRUE(back.load(reader));
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(pass(back, effect({1}, port::DisarmTimer{{1}})).empty());
  EXPECT_EQ(pass(back, effect({1}, port::ArmTimer{{2}, {}})).size(), 2U);
  EXPECT_EQ(from_record<port::PostBatch>(pass(back, effect({2}, port::PostBatch{}))[0].record).version, 6U);
}

TEST_F(RuleHookTest, AWrongRuleIsToldWhatWouldBeRight) {
  EXPECT_EQ(error_of(rule(RuleAct::kDrop, match_of("arm_timr"))),
            "line 2: unknown kind 'arm_timr'; did you mean 'arm_timer'?");
  EXPECT_EQ(error_of(rule(RuleAct::kDrop, match_of("ask", {{"smaple", "1", 2}}))),
            "line 2: ask has no field 'smaple'; its fields are: sample, version, to, to_slot, kind, request");
  EXPECT_EQ(error_of(rule(RuleAct::kDrop, match_of("post_batch", {{"kind", "sned", 2}}))),
            "line 2: 'sned' does not fit the field kind: one of send receive barrier sum min max reduce");
  EventMatch nobody = match_of("arm_timer");
  nobody.node = "engin.1";
  EXPECT_EQ(error_of(rule(RuleAct::kDrop, nobody)), "line 2: no node is called 'engin.1'; did you mean 'engine.1'?");
  EXPECT_EQ(error_of(rule(RuleAct::kComplete, match_of("ask"))),
            "line 3: name what answers send: the kind of the reply");
  RuleSpec probe = rule(RuleAct::kSet, match_of("post_batch"));
  probe.set = {{"version", "node.version_published.mode", 4}};
  EXPECT_EQ(error_of(probe), "line 4: the probe's field has not the type of version");
}

TEST(Pattern, StarsStandForAnyRun) {
  EXPECT_TRUE(fits_pattern("engine.*", "engine.1"));
  EXPECT_TRUE(fits_pattern("*.0", "engine.1.0"));
  EXPECT_TRUE(fits_pattern("e*e.*0", "engine.1.0"));
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_FALSE(fits_pattern("engine", "engine.1"));
  EXPECT_FALSE(fits_pattern("engine.*.0", "engine.1.1"));
  EXPECT_FALSE(fits_pattern("", "x"));
}

}  // namespace
}  // namespace areal::sim
