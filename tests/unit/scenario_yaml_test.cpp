// Scenario files: every bad file is refused with all its problems, good ones are read in full, and nothing crashes.
#include "engine/config/scenario_yaml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/rng.h"
#include "engine/base/text.h"
#include "engine/config/scenario_cluster.h"
#include "engine/config/scenario_keys.h"
#include "engine/config/scenario_schema.h"

namespace areal::config {
namespace {

const std::string kRoot = AREAL_SOURCE_DIR;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> yaml_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/" + folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::ranges::stable_sort(files);
  return files;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "#! line | path | part of the text" at the end of a bad file.
std::vector<Problem> expected_problems(const std::string& text) {
  std::vector<Problem> expected;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#! ")) continue;
    const std::size_t first = line.find('|');
    const std::size_t second = line.find('|', first + 1);
    expected.push_back({std::stoi(line.substr(3)), trimmed(line.substr(first + 1, second - first - 1)),
                        trimmed(line.substr(second + 1))});
  }
  return expected;
}

Scenario good(const std::string& text, const std::vector<Override>& sets = {}) {
  ReadScenario read = read_scenario(text, "test.yaml", sets);
  EXPECT_TRUE(read.scenario.has_value()) << refusal_text("test.yaml", read.problems);
  return read.scenario.value_or(Scenario{});
}

const std::string kSmall = "scenario:\n  name: small\n";

TEST(BadScenarios, EveryProblemIsToldWithItsLineAndPath) {
  const std::vector<std::string> files = yaml_files("tests/data/bad_scenarios");
  ASSERT_GE(files.size(), 25U);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string text = text_of(file);
    const std::vector<Problem> expected = expected_problems(text);
    const ReadScenario read = read_scenario(text, file);
    EXPECT_FALSE(read.scenario.has_value());
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(read.problems.size(), expected.size()) << refusal_text(file, read.problems);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(read.problems[i].line, expected[i].line) << read.problems[i].text;
      EXPECT_EQ(read.problems[i].path, expected[i].path) << read.problems[i].text;
      EXPECT_NE(read.problems[i].text.find(expected[i].text), std::string::npos)
          << "'" << read.problems[i].text << "' without '" << expected[i].text << "'";
    }
  }
}

TEST(BadScenarios, RefusalIsReadable) {
  const ReadScenario read =
      read_scenario(kSmall + "  wrok: {}\n  faults: [{do: kill, node: trainer.0, at: 45}]\n", "a.yaml");
  EXPECT_EQ(refusal_text("a.yaml", read.problems),
            "a.yaml has 2 problems; nothing was started.\n"
            "  line 3   scenario.wrok          unknown key 'wrok' at top level; did you mean 'work'?\n"
            "  line 4   scenario.faults[0].at  '45' has no unit; write 45s or 45ms\n");
  const ReadScenario missing = read_scenario_file("no/such/file.yaml");
  ASSERT_EQ(missing.problems.size(), 1U);
  EXPECT_EQ(refusal_text("x", missing.problems),
            "x has 1 problem; nothing was started.\n             the file cannot be read\n");
}

TEST(GoodScenarios, ShippedFilesAreReadAndGiveThemselvesBack) {
  for (const std::string& file : yaml_files("scenarios")) {
    SCOPED_TRACE(file);
    const ReadScenario read = read_scenario_file(file);
    ASSERT_TRUE(read.scenario.has_value()) << refusal_text(file, read.problems);
    EXPECT_EQ(good(read.scenario->resolved).resolved, read.scenario->resolved);
    EXPECT_EQ(read.scenario->file, file);
  }
}

TEST(GoodScenarios, FailoverHasItsCausesOfFullUpdates) {
  const ReadScenario read = read_scenario_file(kRoot + "/scenarios/failover.yaml");
  ASSERT_TRUE(read.scenario.has_value());
  const Scenario& scenario = *read.scenario;
  const ClusterShape shape = cluster_shape(scenario);
  EXPECT_EQ(shape.trainers, 8U);
  EXPECT_EQ(shape.engines, 2U);
  EXPECT_EQ(shape.engine_world, 4U);
  EXPECT_EQ(scenario.rollout.staleness, 8U);
  EXPECT_EQ(scenario.rollout.grace, 30_s);
  EXPECT_TRUE(scenario.train.delta.enabled);
  EXPECT_EQ(scenario.train.delta.anchor_interval, 20);
  ASSERT_EQ(scenario.faults.size(), 4U);
  const FaultSpec& kill = scenario.faults[0];
  EXPECT_EQ(kill.kind, FaultKind::kKill);
  EXPECT_EQ(kill.node, "engine.1.rank.2");
  ASSERT_TRUE(kill.when.has_value());
  EXPECT_EQ(kill.when->kind, "post_batch");
  EXPECT_FALSE(kill.when->is_input);
  ASSERT_EQ(kill.when->fields.size(), 2U);
  EXPECT_EQ(kill.when->fields[0].name, "version");
  EXPECT_EQ(kill.when->fields[0].value, "11");
  EXPECT_EQ(scenario.faults[2].after, 50_ms);
  EXPECT_GT(kill.line, 0);
  EXPECT_GT(kill.when->line, kill.line);
  ASSERT_TRUE(scenario.faults[3].chance.has_value());
  EXPECT_EQ(scenario.faults[3].chance->denominator, 500U);
  EXPECT_EQ(scenario.rules.size(), 3U);
  EXPECT_EQ(scenario.expect.end, port::RunEnd::kCompleted);
  EXPECT_EQ(scenario.expect.published, 45U);
}

// Each key of the table is written with a value that is not its default and must come back; but for train.lora,
// train.update, train.delta.minibatches and rollout.placement, of which only the default is simulated.
const std::string kFull = R"(scenario:
  name: full
  why: "it's \"all\" here:\n- really"
  model: {kind: qwen3_0_6b, live: all, renamed: 3}
  train: {backend: "fsdp:d2", step_time: 1s, learning_rate: 1e-5, schedule: linear, weight_decay: 0, beta1: 0.8, beta2: 0.99, epsilon: 1e-7,
    delta: {enabled: false, method: other, anchor_interval: 20, window: 64MB}, checkpoint: 4}
  rollout:
    {backend: "vllm:d2t2", batch: 2, samples: 3, max_new_tokens: 7, concurrent: 9, staleness: {max: 4, enforce: true},
     pause: in_place, grace: 1ms, tokens_per_second: 11}
  work: {updates: 6, pause_around_update: false, request_timeout: 1s, request_tries: 2, update_timeout: 61s,
         init_timeout: 90m, max_attempts: 2, update_retries: 1}
  links: {latency: 1500us, bandwidth: 1GiB/s, reset_after: 1h}
  devices: {memory: 80GB, load_time: 1ns, start_time: 0s, copy_bandwidth: 2TB/s}
  faults:
    - {do: lose_message, node: gateway, other: engine.*, chance: 1/500, active: 1/2, after: 1s, limit: 5}
    - {do: fail_compute, what: apply, node: engine.0.rank.1, at: 45s}
    - {do: slow_link, node: trainer.0, when: {input: started, node: trainer.*, incarnation: 2}, lasts: 3s, factor: 4}
  rules:
    - {id: a, on: {received: execute, version: 3, mode: full}, do: set, set: {version: node.applied.version, odd: "#x"}}
    - {id: b, on: {effect: send, occurrence: 2}, do: delay, delay: 10ms}
    - {id: c, on: {tell: want_write}, do: emit, emit: {kind: ack, node: router, slot: router, fields: {request: 1}}}
  interleave: {limit: 24, points: [{name: p, input: execute, node: trainer.0, version: 1}, {name: q, note: applied}]}
  defect: {name: version_bump_aborts, seat: judge}
  budget: {engines_down_max: 2, virtual: 2h, events: 99, heal_at: 1h}
  expect: {verdict: inconclusive, end: update_failed, refused: plan_mismatch, published: 1}
  with_defect: {verdict: violation, invariant: INV-8, node: engine.1.*, version: 3}
)";

TEST(GoodScenarios, EveryKeyComesBackFromTheResolvedForm) {
  const Scenario once = good(kFull);
  const Scenario twice = good(once.resolved);
  EXPECT_EQ(twice.resolved, once.resolved);
  EXPECT_EQ(twice.why, "it's \"all\" here:\n- really");
  EXPECT_EQ(twice.links.bandwidth, 1ULL << 30);
  EXPECT_EQ(twice.work.init_timeout, 5400_s);
  EXPECT_EQ(twice.train.delta.method, "other");
  EXPECT_EQ(twice.train.delta.anchor_interval, 20);
  EXPECT_EQ(twice.train.delta.window, 64'000'000U);
  EXPECT_EQ(twice.train.checkpoint_every, 4U);
  EXPECT_TRUE(twice.rollout.enforce_staleness);
  EXPECT_TRUE(twice.rules[0].match.is_input);
  EXPECT_EQ(twice.rules[0].set[1].value, "#x");
  EXPECT_EQ(twice.rules[2].emit_slot, "router");
  EXPECT_EQ(twice.interleave->names[1], "q");
  EXPECT_EQ(twice.defect_seat, "judge");
  EXPECT_EQ(twice.expect_defect->verdict, Verdict::kSafety);
  EXPECT_EQ(twice.expect_defect->version, 3);
}

TEST(GoodScenarios, EveryKeyOfTheTableIsInTheResolvedForm) {
  Scenario scratch;
  const std::string resolved = good(kFull).resolved;
  for (const KeyPath& known : all_keys(scratch)) {
    EXPECT_NE(resolved.find(std::string(known.key.name) + ":"), std::string::npos) << known.path;
  }
}

TEST(Overrides, SetNestedValuesListItemsAndShortForms) {
  const Scenario scenario = good(kSmall + "  faults: [{do: kill, node: trainer.0, at: 1s}]\n",
                                 {"work.updates=20", "faults[0].at=45s", "scenario.links.latency=1ms",
                                  "faults[1]={do: lose_message, chance: 1/9}", "rollout.staleness=3", "why=a b"});
  ASSERT_EQ(scenario.faults.size(), 2U);
  EXPECT_EQ(scenario.work.updates, 20U);
  EXPECT_EQ(scenario.faults[0].at, 45_s);
  EXPECT_EQ(scenario.links.latency.least, 1_ms);
  EXPECT_EQ(scenario.links.latency.most, 1_ms);
  EXPECT_EQ(scenario.faults[1].chance->denominator, 9U);
  EXPECT_EQ(scenario.rollout.staleness, 3U);
}

TEST(Overrides, ReachIntoWhatTheFileHasInShortForm) {
  const std::string text = kSmall +
                           "  model: qwen3_0_6b\n  rollout: {staleness: 2}\n  defect: some\n  with_defect: {}\n"
                           "  train: {checkpoint: 3}\n";
  const Scenario scenario = good(text, {"model.live=all", "rollout.staleness.enforce=true", "defect.seat=judge",
                                        "train.delta=true", "train.delta.anchor_interval=4"});
  EXPECT_EQ(scenario.model.kind, "qwen3_0_6b");
  EXPECT_TRUE(scenario.model.live_all);
  EXPECT_EQ(scenario.rollout.staleness, 2U);
  EXPECT_TRUE(scenario.rollout.enforce_staleness);
  EXPECT_EQ(scenario.defect, "some");
  EXPECT_EQ(scenario.defect_seat, "judge");
  EXPECT_TRUE(scenario.train.delta.enabled);
  EXPECT_EQ(scenario.train.delta.anchor_interval, 4);
  EXPECT_EQ(scenario.train.checkpoint_every, 3U);
  const ReadScenario typo = read_scenario(text, "test.yaml", {"model.lvie=all"});
  ASSERT_EQ(typo.problems.size(), 1U);
  EXPECT_NE(typo.problems[0].text.find("did you mean 'live'"), std::string::npos) << typo.problems[0].text;
}

TEST(Overrides, WrongOnesAreProblemsWithoutALine) {
  const std::vector<std::pair<Override, std::string>> wrong = {{"work.updates", "path.to.key=value"},
                                                               {"=3", "path.to.key=value"},
                                                               {"work..updates=3", "path.to.key=value"},
                                                               {"faults[x].at=3s", "path.to.key"},
                                                               {"faults[2].at=3s", "there is no"},
                                                               {"name.first=x", "there is no mapping"},
                                                               {"work[0]=3", "there is no list"},
                                                               {"work.updates='3'", "got string '3'"},
                                                               {"wrok.updates=3", "did you mean"},
                                                               {"work.updates=", "null not allowed"},
                                                               {"why=[", "not YAML"}};
  for (const auto& [change, fragment] : wrong) {
    SCOPED_TRACE(change);
    const ReadScenario read = read_scenario(kSmall + "  work: {updates: 3}\n", "test.yaml", {change});
    ASSERT_EQ(read.problems.size(), 1U) << refusal_text("test.yaml", read.problems);
    EXPECT_EQ(read.problems[0].line, 0);
    EXPECT_NE(read.problems[0].text.find(fragment), std::string::npos) << read.problems[0].text;
  }
}

TEST(Cluster, NodesHaveTheNamesThatPatternsUse) {
  const Scenario scenario = good(kSmall, {"train.backend=fsdp:d1", "rollout.backend=sglang:d2t1"});
  EXPECT_EQ(node_names(cluster_shape(scenario)),
            (std::vector<std::string>{"trainer.0", "engine.0.rank.0", "engine.1.rank.0", "gateway", "controller",
                                      "router", "store", "guard.0", "guard.1", "guard.2"}));
  EXPECT_TRUE(fits_pattern("engine.*.rank.0", "engine.1.rank.0"));
  EXPECT_TRUE(fits_pattern("*", "x"));
  EXPECT_TRUE(fits_pattern("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(fits_pattern("engine.*", "gateway"));
  EXPECT_FALSE(fits_pattern("a*b", "abc"));
}

// A reader that can be made to crash or to accept what it prints differently is of no use to a fuzzer.
TEST(Garbled, FilesAreReadOrRefusedButNeverCrash) {
  Rng rng(7);
  // The large model would take most of the time.
  std::string failover = text_of(kRoot + "/scenarios/failover.yaml");
  failover.replace(failover.find("qwen3_30b_a3b"), 13, "tiny");
  ASSERT_TRUE(read_scenario(failover, "small.yaml").scenario.has_value());
  for (const std::string& text : {failover, kFull}) {
    for (std::size_t length = 0; length < text.size(); length += 13) {
      const ReadScenario read = read_scenario(text.substr(0, length), "cut.yaml");
      EXPECT_NE(read.scenario.has_value(), !read.problems.empty());
    }
    for (int round = 0; round < 400; ++round) {
      std::string garbled = text;
      const std::uint64_t changes = 1 + rng.draw_below(4);
      for (std::uint64_t i = 0; i < changes; ++i) {
        const std::uint64_t place = rng.draw_below(garbled.size());
        garbled[place] = static_cast<char>(rng.draw_below(256));
      }
      const ReadScenario read = read_scenario(garbled, "garbled.yaml");
      ASSERT_NE(read.scenario.has_value(), !read.problems.empty());
      if (read.scenario.has_value()) {
        EXPECT_EQ(good(read.scenario->resolved).resolved, read.scenario->resolved) << garbled;
      }
    }
  }
}

TEST(Garbled, DeepNestingAndHugeTextAreRefused) {
  const std::string deep = "scenario: " + std::string(100'000, '[');
  EXPECT_FALSE(read_scenario(deep, "deep.yaml").problems.empty());
  EXPECT_FALSE(read_scenario(std::string(5U << 20, ' '), "huge.yaml").problems.empty());
}

TEST(Schema, ReferenceInTheDocumentIsTheGeneratedOne) {
  const std::string document = text_of(kRoot + "/docs/scenarios.md");
  EXPECT_NE(document.find(scenario_key_table()), std::string::npos) << scenario_key_table();
}

TEST(Schema, NamesEveryKey) {
  const std::string schema = scenario_json_schema();
  Scenario scratch;
  for (const KeyPath& known : all_keys(scratch)) {
    EXPECT_NE(schema.find("\"" + std::string(known.key.name) + "\": {"), std::string::npos) << known.path;
  }
  EXPECT_EQ(std::ranges::count(schema, '{'), std::ranges::count(schema, '}'));
}

}  // namespace
}  // namespace areal::config
