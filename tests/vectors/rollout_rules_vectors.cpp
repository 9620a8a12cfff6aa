// Vectors of the rules around a rollout's batches.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/rollout_rules.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

Outcome check_budget(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto budget =
      algo::submit_budget({inputs.at("pending_limit"), inputs.at("pending_inputs"), inputs.at("max_queue_size"),
                           inputs.at("input_queue_size"), inputs.at("batch_size")});
  if (!budget) return failed(budget.error().detail);
  return expect_equal(vector.at("expected"), {{"capacity", budget->room}, {"submits", budget->submits}});
}

Outcome check_choice(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& wanted = vector.at("expected");
  std::vector<algo::TaskResult> results;
  for (const Json& result : inputs.at("drained")) results.push_back({result.at("task_id"), result.at("create_time")});
  const bool is_deterministic = inputs.at("deterministic");
  const auto choice = algo::choose_results(results, inputs.at("count"), is_deterministic);
  std::vector<std::int64_t> taken, left;
  for (const auto& result : choice.taken) taken.push_back(result.task);
  for (const auto& result : choice.left) left.push_back(result.task);
  if (is_deterministic) {
    return expect_equal(wanted, {{"selected_task_ids", taken}, {"pending_task_ids", left}, {"shuffled", false}});
  }
  std::ranges::sort(taken);
  return expect_equal(wanted, {{"selected_task_id_set", taken}, {"pending_task_ids", left}, {"shuffled", true}});
}

Instant at_seconds(const Json& seconds) {
  return {static_cast<std::int64_t>(std::llround(seconds.get<double>() * 1e9))};
}

Outcome check_guard(const Json& vector) {
  using Guard = algo::CollectionGuard;
  const Json& inputs = vector.at("inputs");
  Guard guard({inputs.at("min_batch_size"), inputs.at("max_empty_rounds"),
               at_seconds(inputs.at("stall_timeout")) - Instant{}, false});
  Guard::State state = Guard::State::kCollecting;
  int calls = 0;
  for (const Json& round : inputs.at("rounds")) {
    if (state != Guard::State::kCollecting) break;
    state = guard.round(at_seconds(round.at(0)), round.at(1));
    ++calls;
  }
  Json got = {{"result", "running"}, {"calls", calls}};
  if (state == Guard::State::kEnough) got = {{"result", "batch"}, {"groups", guard.groups()}, {"calls", calls}};
  if (state == Guard::State::kStalled) {
    got = {{"result", "RuntimeError"}, {"empty_rounds", guard.empty_rounds()}, {"calls", calls}};
  }
  return expect_equal(vector.at("expected"), got);
}

}  // namespace

void add_rollout_rules(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "executor.submit_budget", check_budget});
  registry.push_back({"spec_examples", "executor.select_results", check_choice});
  registry.push_back({"spec_examples", "executor.stall_detector", check_guard});
}

}  // namespace areal::vectors
