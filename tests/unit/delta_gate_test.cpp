// The gate of delta updates: each condition alone and in order, nothing changed on refusal, and what workers read.
#include "engine/config/delta_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/config/delta_environment.h"
#include "engine/config/scenario_yaml.h"
#include "engine/delta/hyper_parameters.h"

namespace areal::config {
namespace {

DeltaGateInput switched_on() {
  DeltaGateInput input;
  input.enabled = true;
  return input;
}

Environment environment(const std::vector<Variable>& variables) {
  Environment made;
  for (const Variable& variable : variables) made.set(variable.name, variable.value);
  return made;
}

DeltaEnvironment snapshot(const std::vector<Variable>& variables) {
  Result<DeltaEnvironment> read = DeltaEnvironment::read(environment(variables));
  EXPECT_TRUE(read);
  return *std::move(read);
}

using Change = void (*)(DeltaGateInput&);
struct Condition {
  DeltaRule rule;
  Change break_it;
  std::string_view text;
};

const std::vector<Condition> kConditions = {
    {DeltaRule::kStrategy, [](DeltaGateInput& input) { input.strategy = "colocation"; },
     "supported only with rollout scheduling strategy 'separation', got 'colocation'"},
    {DeltaRule::kMethod, [](DeltaGateInput& input) { input.method = "snapshot"; },
     "weight_update_delta_method must be 'adamw'"},
    {DeltaRule::kAnchorInterval, [](DeltaGateInput& input) { input.anchor_interval = -1; },
     "weight_update_anchor_interval must be non-negative"},
    {DeltaRule::kActorBackend, [](DeltaGateInput& input) { input.actor_backend = "fsdp:d1"; },
     "requires actor.backend='megatron:*'; got 'fsdp:d1'"},
    {DeltaRule::kRolloutBackend, [](DeltaGateInput& input) { input.rollout_backend = "vllm:d1"; },
     "requires rollout.backend='sglang:*'; got 'vllm:d1'"},
    {DeltaRule::kActorVersion, [](DeltaGateInput& input) { input.actor_version = "v1"; },
     "requires actor._version='v2'; got 'v1'"},
    {DeltaRule::kRolloutVersion, [](DeltaGateInput& input) { input.rollout_version = "v1"; },
     "requires rollout._version='v2'; got 'v1'"},
    {DeltaRule::kUpdateMode, [](DeltaGateInput& input) { input.update_mode = "xccl"; },
     "requires actor.weight_update_mode='awex'; got 'xccl'"},
    {DeltaRule::kLora, [](DeltaGateInput& input) { input.use_lora = true; }, "does not support actor.use_lora=True"}};

TEST(DeltaGate, OffChangesNothing) {
  DeltaGateInput input;
  input.actor_backend = "fsdp:d2";
  Environment driver = environment({{"K", "v"}});
  std::vector<SpecVariables> actor(1);
  std::vector<SpecVariables> rollout = {environment({{"A", "1"}})};
  const Result<Environment> exported = export_delta_environment(input, driver, actor, rollout);
  ASSERT_TRUE(exported);
  EXPECT_EQ(*exported, Environment{});
  EXPECT_EQ(driver, environment({{"K", "v"}}));
  EXPECT_FALSE(actor[0].has_value());
  EXPECT_EQ(rollout[0], environment({{"A", "1"}}));
}

TEST(DeltaGate, OnTellsTheDriverAndEveryWorker) {
  DeltaGateInput input = switched_on();
  input.anchor_interval = 20;
  Environment driver = environment({{"DTE_DELTA_TRANSFER", "0"}, {"X", "y"}});
  std::vector<SpecVariables> actor = {environment({{"A", "1"}}), std::nullopt};
  std::vector<SpecVariables> rollout(2);
  const Result<Environment> exported = export_delta_environment(input, driver, actor, rollout);
  ASSERT_TRUE(exported);
  EXPECT_EQ(*exported, environment({{"DTE_SEPARATION_WEIGHT_UPDATE", "1"},
                                    {"DTE_DELTA_TRANSFER", "1"},
                                    {"DTE_DELTA_ANCHOR_INTERVAL", "20"},
                                    {"DTE_STREAMING_RECONSTRUCT", "1"}}));
  EXPECT_EQ(*driver.find("DTE_DELTA_TRANSFER"), "1");
  EXPECT_EQ(driver.variables().size(), 5U);
  EXPECT_EQ(actor[0]->variables().size(), 5U);
  EXPECT_EQ(*actor[0]->find("A"), "1");
  for (const SpecVariables& spec : {actor[1], rollout[0], rollout[1]}) EXPECT_EQ(spec, *exported);
  const Result<DeltaEnvironment> worker = DeltaEnvironment::read(*rollout[1]);
  ASSERT_TRUE(worker);
  EXPECT_TRUE(worker->enabled());
  EXPECT_TRUE(worker->tuning().streaming_reconstruct);
  EXPECT_EQ(worker->anchor_interval(), 20);
}

TEST(DeltaGate, EachConditionAloneIsRefusedAndChangesNothing) {
  for (const Condition& condition : kConditions) {
    SCOPED_TRACE(condition.text);
    DeltaGateInput input = switched_on();
    condition.break_it(input);
    Environment driver = environment({{"K", "v"}});
    std::vector<SpecVariables> actor(2);
    std::vector<SpecVariables> rollout(1);
    const Result<Environment> exported = export_delta_environment(input, driver, actor, rollout);
    ASSERT_FALSE(exported);
    EXPECT_NE(exported.error().detail.find(condition.text), std::string::npos) << exported.error().detail;
    EXPECT_EQ(driver, environment({{"K", "v"}}));
    for (const SpecVariables& spec : {actor[0], actor[1], rollout[0]}) EXPECT_FALSE(spec.has_value());
    ASSERT_EQ(all_delta_problems(input).size(), 1U);
    EXPECT_EQ(all_delta_problems(input)[0].rule, condition.rule);
    input.enabled = false;
    EXPECT_TRUE(check_delta_gate(input));
  }
}

// All 512 combinations: every broken condition is told, in order, and the gate gives the first.
TEST(DeltaGate, EveryFailureIsToldInOrder) {
  for (std::size_t broken = 0; broken < (1U << kConditions.size()); ++broken) {
    DeltaGateInput input = switched_on();
    std::vector<DeltaRule> wanted;
    for (std::size_t i = 0; i < kConditions.size(); ++i) {
      if ((broken >> i & 1U) == 0) continue;
      kConditions[i].break_it(input);
      wanted.push_back(kConditions[i].rule);
    }
    const std::vector<DeltaProblem> problems = all_delta_problems(input);
    std::vector<DeltaRule> told;
    for (const DeltaProblem& problem : problems) told.push_back(problem.rule);
    ASSERT_EQ(told, wanted);
    const Status gate = check_delta_gate(input);
    ASSERT_EQ(gate.has_value(), wanted.empty());
    if (!gate) {
      EXPECT_EQ(gate.error().detail, problems.front().text);
    }
  }
}

TEST(DeltaGate, BackendsAreComparedWithoutTheirLayoutAndCase) {
  DeltaGateInput input = switched_on();
  input.actor_backend = "Megatron:(attn:d2|ffn:e2)";
  input.rollout_backend = "SGLANG";
  EXPECT_TRUE(check_delta_gate(input));
  input.actor_backend = "megatron2:d1";
  EXPECT_FALSE(check_delta_gate(input));
}

TEST(Minibatches, OneStepAnUpdateWithDelta) {
  EXPECT_EQ(*resolve_minibatches(true, "", 1), 1U);
  EXPECT_EQ(*resolve_minibatches(false, "", kDefaultMinibatches), 4U);
  EXPECT_EQ(*resolve_minibatches(true, "reuse_train_logp", 4), 1U);
  EXPECT_EQ(*resolve_minibatches(false, "reuse_train_logp", 4), 1U);
  for (const std::uint32_t minibatches : {0U, 2U, 4U}) {
    const auto refused = resolve_minibatches(true, "loglinear", minibatches);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().detail.find("requires ppo_n_minibatches=1"), std::string::npos);
    EXPECT_TRUE(refused.error().detail.ends_with("ppo_n_minibatches=" + std::to_string(minibatches)));
  }
}

TEST(DeltaEnvironment, NewNamesWinUnlessTheyAreBlank) {
  EXPECT_FALSE(snapshot({}).delta_transfer());
  EXPECT_TRUE(snapshot({{"AWEX_DELTA_TRANSFER", "1"}}).delta_transfer());
  EXPECT_FALSE(snapshot({{"AWEX_DELTA_TRANSFER", "1"}, {"DTE_DELTA_TRANSFER", "0"}}).delta_transfer());
  EXPECT_TRUE(snapshot({{"AWEX_DELTA_TRANSFER", "1"}, {"DTE_DELTA_TRANSFER", " "}}).delta_transfer());
  EXPECT_TRUE(snapshot({{"DTE_DELTA_TRANSFER", "1"}}).delta_transfer());
  EXPECT_EQ(snapshot({{"AWEX_DELTA_ANCHOR_INTERVAL", "5"}}).anchor_interval(), 5);
  EXPECT_EQ(snapshot({{"AWEX_DELTA_ANCHOR_INTERVAL", "5"}, {"DTE_DELTA_ANCHOR_INTERVAL", "7"}}).anchor_interval(), 7);
  EXPECT_TRUE(snapshot({{"PYQ_STREAMING_RECONSTRUCT", "1"}}).tuning().streaming_reconstruct);
  EXPECT_FALSE(snapshot({{"AWEX_STREAMING_RECONSTRUCT", "1"}}).tuning().streaming_reconstruct);
}

TEST(DeltaEnvironment, ASnapshotDoesNotFollowItsEnvironment) {
  Environment variables = environment(
      {{"DTE_DELTA_TRANSFER", ""}, {"AWEX_DELTA_TRANSFER", " yes "}, {"DTE_SEPARATION_WEIGHT_UPDATE", "on"}});
  const Result<DeltaEnvironment> before = DeltaEnvironment::read(variables);
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->delta_transfer());
  EXPECT_TRUE(before->separation_weight_update());
  variables.set("DTE_DELTA_TRANSFER", "0");
  const Result<DeltaEnvironment> after = DeltaEnvironment::read(variables);
  ASSERT_TRUE(after);
  EXPECT_TRUE(before->enabled());
  EXPECT_FALSE(after->enabled());
}

TEST(DeltaEnvironment, TuningHasDefaultsAndIsRead) {
  const DeltaEnvironment standard = snapshot({});
  EXPECT_EQ(standard.tuning().window, 512ULL << 20);
  EXPECT_EQ(standard.tuning().bf16_margin, 1e-4);
  EXPECT_EQ(standard.tuning().boundary_chunk, 50'000'000);
  EXPECT_TRUE(standard.tuning().coalesce);
  EXPECT_TRUE(standard.tuning().group_transfers);
  EXPECT_FALSE(standard.tuning().streaming_reconstruct);
  EXPECT_FALSE(standard.tuning().compute_on_cpu);
  EXPECT_FALSE(standard.tuning().debug);
  EXPECT_TRUE(standard.is_always_dense("model.layers.0.mlp.gate.weight"));
  const DeltaEnvironment tuned = snapshot({{"DTE_INVERSION_ALLREDUCE_WINDOW_MB", " 1.5 "},
                                           {"DTE_INVERSION_COMPUTE_ON_CPU", "true"},
                                           {"DTE_DELTA_INVERSION_BF16_MARGIN_REL", "2e-3"},
                                           {"DTE_DELTA_INVERSION_DENSE_PARAM_SUFFIXES", ""},
                                           {"PYQ_BOUNDARY_CHUNK_ELEMS", "-1"},
                                           {"AWEX_DELTA_P2P_COALESCE", "0"},
                                           {"DTE_DELTA_INVERSION_DEBUG", "ON"},
                                           {"AWEX_WU_USE_GROUP", "off"}});
  EXPECT_EQ(tuned.tuning().window, 3ULL << 19);
  EXPECT_TRUE(tuned.tuning().compute_on_cpu);
  EXPECT_EQ(tuned.tuning().bf16_margin, 2e-3);
  EXPECT_EQ(tuned.tuning().boundary_chunk, -1);
  EXPECT_FALSE(tuned.tuning().coalesce);
  EXPECT_TRUE(tuned.tuning().debug);
  EXPECT_FALSE(tuned.tuning().group_transfers);
  EXPECT_FALSE(tuned.is_always_dense("model.layers.0.mlp.gate.weight"));
}

TEST(DeltaEnvironment, NumbersThatAreNoneAreRefused) {
  const std::vector<std::pair<Variable, std::string>> wrong = {
      {{"DTE_DELTA_ANCHOR_INTERVAL", "1.5"}, "int() with base 10: '1.5'"},
      {{"DTE_DELTA_ANCHOR_INTERVAL", "+-5"}, "int() with base 10"},
      {{"DTE_BOUNDARY_CHUNK_ELEMS", "many"}, "int() with base 10: 'many'"},
      {{"DTE_INVERSION_ALLREDUCE_WINDOW_MB", "x"}, "string to float: 'x'"},
      {{"DTE_INVERSION_ALLREDUCE_WINDOW_MB", "-1"}, "must be from 0"},
      {{"DTE_INVERSION_ALLREDUCE_WINDOW_MB", "nan"}, "must be from 0"},
      {{"DTE_INVERSION_ALLREDUCE_WINDOW_MB", "inf"}, "must be from 0"}};
  for (const auto& [variable, text] : wrong) {
    SCOPED_TRACE(variable.name + "=" + variable.value);
    const Result<DeltaEnvironment> read = DeltaEnvironment::read(environment({variable}));
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().detail.find(text), std::string::npos) << read.error().detail;
  }
  EXPECT_EQ(snapshot({{"DTE_DELTA_ANCHOR_INTERVAL", " +7 "}}).anchor_interval(), 7);
}

TEST(DeltaWorld, IsAPowerOfTwo) {
  for (const std::int64_t world : {2, 4, 8, 16}) EXPECT_TRUE(check_delta_world(world / 2, world / 2, world));
  for (const std::int64_t world : {3, 5, 6}) {
    const Status checked = check_delta_world(world / 2, world - world / 2, world);
    ASSERT_FALSE(checked);
    EXPECT_TRUE(checked.error().detail.ends_with("got inference=" + std::to_string(world / 2) +
                                                 ", training=" + std::to_string(world - world / 2) +
                                                 ", combined=" + std::to_string(world)));
  }
  EXPECT_FALSE(check_delta_world(1, 0, 1));
  EXPECT_FALSE(check_delta_world(1, 2, 4));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(check_delta_world(kMost, kMost, 2));
  EXPECT_FALSE(check_delta_world(1, kMost, std::numeric_limits<std::int64_t>::min()));
}

TEST(CompletedStep, UsesTheRecordedRate) {
  delta::ParameterGroup group{
      .recorded_rate = 3e-6, .present_rate = 2e-6, .weight_decay = 0.1, .betas = std::pair(0.9, 0.95), .epsilon = 1e-8};
  const auto settings = delta::completed_step_settings(group);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->learning_rate, 3e-6);
  EXPECT_EQ(settings->weight_decay, 0.1);
  EXPECT_EQ(settings->beta2, 0.95);
  group.recorded_rate.reset();
  EXPECT_FALSE(delta::completed_step_settings(group).has_value());
}

const std::string kDelta = "scenario:\n  name: small\n  train: {delta: true}\n";

std::vector<Problem> problems_of(const std::string& text, const std::vector<Override>& sets) {
  return read_scenario(text, "test.yaml", sets).problems;
}

TEST(DeltaScenario, KeysAreRead) {
  const ReadScenario read = read_scenario(
      kDelta, "test.yaml",
      {"train.delta.anchor_interval=20", "train.delta.window=0B", "train.checkpoint=5", "rollout.backend=sglang:d3"});
  ASSERT_TRUE(read.scenario.has_value()) << refusal_text("test.yaml", read.problems);
  EXPECT_TRUE(read.scenario->train.delta.enabled);
  EXPECT_EQ(read.scenario->train.delta.method, "adamw");
  EXPECT_EQ(read.scenario->train.delta.anchor_interval, 20);
  EXPECT_EQ(read.scenario->train.delta.window, 0U);
  EXPECT_EQ(read.scenario->train.checkpoint_every, 5U);
  const ReadScenario again = read_scenario(read.scenario->resolved, "test.yaml");
  ASSERT_TRUE(again.scenario.has_value());
  EXPECT_EQ(again.scenario->resolved, read.scenario->resolved);
}

TEST(DeltaScenario, AChangeOnTheCommandLineIsRefusedAlike) {
  const std::vector<Problem> anchor = problems_of(kDelta, {"train.delta.anchor_interval=-1"});
  ASSERT_EQ(anchor.size(), 1U);
  EXPECT_EQ(refusal_text("a.yaml", anchor),
            "a.yaml has 1 problem; nothing was started.\n"
            "  --set    scenario.train.delta.anchor_interval  must be >= 0 (0 = no periodic anchor), got -1\n");
  const std::vector<Problem> conflicts =
      problems_of(kDelta, {"train.delta.minibatches=4", "train.lora=true", "rollout.placement=colocation"});
  std::vector<std::string> texts;
  for (const Problem& problem : conflicts) {
    EXPECT_EQ(problem.line, 0);
    texts.push_back(problem.text);
  }
  std::ranges::stable_sort(texts);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"delta does not support lora", "delta needs placement separation, got colocation",
                                      "delta(adamw) needs exactly 1 optimizer step per update, got minibatches=4"}));
}

}  // namespace
}  // namespace areal::config
