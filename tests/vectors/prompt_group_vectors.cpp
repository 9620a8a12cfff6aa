// Vectors of prompt groups.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/prompt_group.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

Outcome check_stats(const Json& wanted, const algo::GroupCounts& got, Tolerance tolerance) {
  const Json whole = {{"target_slot_count", got.target},
                      {"usable_slot_count", got.usable},
                      {"trainable_slot_count", got.trainable},
                      {"fully_masked_group", got.is_fully_masked},
                      {"singleton_slot_group", got.is_singleton}};
  for (const auto& [key, value] : whole.items()) {
    if (const Outcome outcome = expect_equal(wanted.at(key), value); outcome.verdict != Verdict::kPassed)
      return outcome;
  }
  return first_miss(
      {value_miss("usable yield", wanted.at("pre_filter_usable_slot_yield"), got.usable_yield, tolerance),
       value_miss("trainable yield", wanted.at("pre_filter_trainable_slot_yield"), got.trainable_yield, tolerance)});
}

Outcome check_filter(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& wanted = vector.at("expected");
  const algo::GroupRule rule{inputs.at("group_size"), inputs.at("min_usable_group_size"),
                             inputs.at("drop_incomplete_group"), inputs.at("reward_normalization")};
  std::vector<algo::GroupMember> members;
  for (const Json& rows : inputs.at("slot_rows")) {
    auto& member = members.emplace_back();
    if (!rows.is_null()) member.rows = rows.get<std::int64_t>();
  }
  const auto verdict = algo::judge_group(rule, members);
  if (wanted.at("outcome") == "WorkflowContractError") {
    if (verdict) return failed("the broken contract is not refused");
    return expect_equal(true, verdict.error().code == Errc::kUnsupported);
  }
  if (!verdict) return failed(verdict.error().detail);
  if (verdict->is_kept != (wanted.at("outcome") == "group")) return failed("kept and dropped are mixed up");
  if (wanted.at("rows") != verdict->rows) return failed("another number of rows");
  return check_stats(wanted.at("stats"), verdict->counts, tolerance_of(vector));
}

Outcome check_rewards(const Json& vector) {
  const auto normalized = algo::normalized_rewards(doubles_of(vector.at("inputs").at("last_rewards")));
  return first_miss(
      {values_miss("normalized", vector.at("expected").at("normalized"), normalized, tolerance_of(vector))});
}

Outcome check_marks(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto marks =
      algo::mark_groups(integers_of(inputs.at("row_token_counts")), integers_of(inputs.at("group_sizes")));
  if (!marks) return failed(marks.error().detail);
  Json starts = Json::array();
  for (const std::uint8_t start : marks->starts) starts.push_back(start != 0);
  return expect_equal(
      vector.at("expected"),
      {{"group_starts", starts}, {"group_sizes", marks->sizes}, {"group_loss_weights", marks->loss_weights}});
}

}  // namespace

void add_prompt_groups(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "executor.group_filter", check_filter});
  registry.push_back({"spec_examples", "executor.group_reward_norm", check_rewards});
  registry.push_back({"spec_examples", "executor.group_training_metrics", check_marks});
}

}  // namespace areal::vectors
