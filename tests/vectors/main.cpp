// Runs every numeric vector of a folder against the code and counts what passed, failed and was skipped.
//
// Folder: $AREAL_VECTORS_DIR, else the copy in tests/data/vectors. Unknown functions are skipped by name; a file that
// cannot be read is a failure. Exit 0 if something ran and nothing failed, else 1.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/vectors/registry.h"

namespace areal::vectors {

Outcome expect_equal(const Json& wanted, const Json& got) {
  if (wanted == got) return passed();
  constexpr std::size_t kPrinted = 600;
  return failed(
      fmt::format("wanted {}\n      got {}", wanted.dump().substr(0, kPrinted), got.dump().substr(0, kPrinted)));
}

namespace {

struct Totals {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  std::map<std::string, int> skipped_functions;
};

const Checker* find(const std::vector<Checker>& registry, std::string_view topic, std::string_view function) {
  const auto place = std::ranges::find_if(
      registry, [&](const Checker& checker) { return checker.topic == topic && checker.function == function; });
  return place == registry.end() ? nullptr : &*place;
}

void run_case(const std::vector<Checker>& registry, const std::string& topic, const std::string& function,
              const Json& vector, const std::string& name, Totals& totals) {
  const Checker* checker = find(registry, topic, function);
  Outcome outcome = skipped("");
  if (checker != nullptr) {
    try {
      outcome = checker->check(vector);
    } catch (const std::exception& error) {
      outcome = failed(fmt::format("the case cannot be read: {}", error.what()));
    }
  }
  switch (outcome.verdict) {
    case Verdict::kPassed:
      ++totals.passed;
      return;
    case Verdict::kSkipped:
      ++totals.skipped;
      ++totals.skipped_functions[fmt::format("{} {}{}", topic, function,
                                             outcome.detail.empty() ? "" : " (" + outcome.detail + ")")];
      return;
    case Verdict::kFailed:
      ++totals.failed;
      fmt::print("FAILED {} {} {}:\n      {}\n", topic, function, name, outcome.detail);
      return;
  }
}

// Both formats: "cases" of one topic, and "vectors" with an operation each.
void run_file(const std::vector<Checker>& registry, const std::filesystem::path& path, Totals& totals) {
  std::ifstream file(path);
  const Json content = Json::parse(file);
  if (content.contains("cases")) {
    const std::string topic = content.at("topic");
    for (const Json& vector : content.at("cases")) {
      run_case(registry, topic, vector.at("fn"), vector, vector.at("name"), totals);
    }
    return;
  }
  for (const Json& vector : content.at("vectors")) {
    run_case(registry, "spec_examples", vector.at("op"), vector, vector.at("id"), totals);
  }
}

int run_folder(const std::filesystem::path& folder) {
  std::vector<Checker> registry;
  add_alloc_mode(registry);
  add_transfer_plan(registry);
  add_sharding(registry);
  add_staleness(registry);
  add_config_gates(registry);
  add_spec_examples(registry);
  add_adamw_steps(registry);
  add_bf16_boundary(registry);
  add_adamw_boundary(registry);
  add_tensor_fingerprint(registry);
  add_dte_config(registry);
  add_dte_codec(registry);
  add_kl_estimator(registry);
  add_mopd(registry);
  add_json(registry);
  add_lr_schedule(registry);
  add_training(registry);
  add_tracker(registry);
  add_token_counts(registry);
  add_rollout(registry);
  add_lm_head(registry);
  add_lockstep(registry);
  add_gae(registry);
  add_gae_lambda(registry);
  add_overlong_penalty(registry);
  add_packing(registry);
  add_prompt_length(registry);
  add_normalization(registry);
  add_advantages(registry);
  add_prompt_groups(registry);
  add_rollout_rules(registry);
  add_policy_loss(registry);
  add_critic_loss(registry);
  add_rejection(registry);
  add_dpo(registry);
  add_m2po(registry);
  add_proximal(registry);
  add_grpo_loss(registry);
  std::vector<std::filesystem::path> paths;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::ranges::stable_sort(paths);
  Totals totals;
  if (problem) fmt::print("{}: {}\n", folder.string(), problem.message());
  for (const std::filesystem::path& path : paths) {
    try {
      run_file(registry, path, totals);
    } catch (const std::exception& error) {
      ++totals.failed;
      fmt::print("FAILED {}: {}\n", path.filename().string(), error.what());
    }
  }
  for (const auto& [function, count] : totals.skipped_functions) fmt::print("skipped {} x {}\n", count, function);
  fmt::print("{} passed, {} failed, {} skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed > 0 || totals.passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace areal::vectors

int main() {
  const char* folder = std::getenv("AREAL_VECTORS_DIR");
  return areal::vectors::run_folder(folder != nullptr && *folder != '\0' ? folder : AREAL_VECTORS_DEFAULT);
}
