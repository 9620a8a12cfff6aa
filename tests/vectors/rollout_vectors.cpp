// Worked examples of what a rollout records: rows, labels, rewards of interactions.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/algo/generation_call.h"
#include "engine/algo/interaction_rewards.h"
#include "engine/algo/trajectory_row.h"
#include "engine/algo/version_runs.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

Json ones(const std::vector<std::uint8_t>& mask) { return Json(std::vector<int>(mask.begin(), mask.end())); }

Outcome check_row(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto got = algo::trajectory_row(
      {in.at("input_tokens"), in.at("output_tokens"), floats_of(in.at("output_logprobs")), in.at("output_versions")});
  if (!got) return failed(got.error().detail);
  const algo::TrajectoryRow& row = got.value();
  std::vector<bool> attention(row.attention_mask.begin(), row.attention_mask.end());
  return expect_equal(vector.at("expected"), {{"input_ids", row.input_ids},
                                              {"logprobs", row.logprobs},
                                              {"loss_mask", ones(row.loss_mask)},
                                              {"versions", row.versions},
                                              {"turn_ids", row.turn_ids},
                                              {"attention_mask", attention}});
}

algo::Generation generation_of(const Json& lengths) {
  const std::size_t made = lengths.at("output_len");
  return {std::vector<std::int32_t>(lengths.at("input_len").get<std::size_t>(), 1), std::vector<std::int32_t>(made, 1),
          std::vector<float>(made, -1.0F), std::vector<std::int64_t>(made, 0)};
}

Outcome check_turns(const Json& vector) {
  const auto parent = algo::trajectory_row(generation_of(vector.at("inputs").at("parent")));
  if (!parent) return failed(parent.error().detail);
  const auto child = algo::child_row(parent.value(), generation_of(vector.at("inputs").at("child")));
  if (!child) return failed(child.error().detail);
  return expect_equal(vector.at("expected"),
                      {{"turn_ids", child.value().row.turn_ids}, {"loss_mask", ones(child.value().row.loss_mask)}});
}

std::string text_or_nothing(const Json& json) { return json.is_null() ? std::string() : json.get<std::string>(); }

Outcome check_discount(const Json& vector) {
  algo::InteractionRewards rewards;
  for (const Json& reward : vector.at("inputs").at("rewards")) {
    const std::string id = "i" + std::to_string(rewards.interactions().size());
    const auto given = reward.is_null() ? std::nullopt : std::optional(reward.get<double>());
    if (!rewards.add({.id = id, .messages = id, .parent = {}, .reward = given})) return failed("refused");
  }
  if (!rewards.discount(vector.at("inputs").at("discount"))) return failed("refused");
  std::vector<double> got;
  for (const algo::Interaction& interaction : rewards.interactions()) got.push_back(interaction.reward.value());
  return first_miss({values_miss("rewards", vector.at("expected").at("rewards"), got, tolerance_of(vector))});
}

Outcome check_orphans(const Json& vector) {
  algo::InteractionRewards rewards;
  for (const Json& entry : vector.at("inputs").at("entries")) {
    if (!rewards.add({.id = entry.at("id"),
                      .messages = entry.at("messages"),
                      .parent = text_or_nothing(entry.at("parent")),
                      .created = entry.at("created"),
                      .reward = {}})) {
      return failed("refused");
    }
  }
  const auto dropped = rewards.drop_retry_orphans();
  if (!dropped) return failed(dropped.error().detail);
  return expect_equal(vector.at("expected"), {{"dropped", dropped.value()}});
}

Outcome check_generated(const Json& vector) {
  const Json& in = vector.at("inputs");
  bool valid = true;
  for (const Json& logprob : in.at("output_logprobs")) valid = valid && !logprob.is_boolean();  // A reader's to refuse.
  valid = valid && algo::check_generated(int32_of(in.at("output_tokens")), floats_of(in.at("output_logprobs")));
  return expect_equal(vector.at("expected").at("valid"), valid);
}

Outcome check_call(const Json& vector) {
  const Json& in = vector.at("inputs");
  constexpr std::int64_t kNoLimit = 1'000'000;
  auto call = algo::GenerationCall::create(int32_of(in.at("prompt")), kNoLimit, in.at("max_new_tokens"));
  if (!call) return failed(call.error().detail);
  Json requests = Json::array();
  for (const Json& segment : in.at("segments")) {
    const algo::GenerationRequest request = call->send(segment.at("version_at_send"));
    requests.push_back(
        {{"input_ids", request.input_ids}, {"max_new_tokens", request.max_new_tokens}, {"version", request.version}});
    const auto reason = algo::stop_reason_from(segment.at("stop_reason").get<std::string>());
    if (!reason || !call->receive({int32_of(segment.at("tokens")), floats_of(segment.at("logprobs")), *reason})) {
      return failed("a segment is refused");
    }
  }
  if (!call->finished()) return failed("the call is not finished");
  const Json& wanted = vector.at("expected");
  const char* reason = call->stop_reason() == algo::StopReason::kStop ? "stop" : "length";
  Json rest = wanted;
  rest.erase("output_logprobs");
  const Outcome outcome = expect_equal(rest, {{"requests", requests},
                                              {"output_tokens", call->tokens()},
                                              {"output_versions", call->versions()},
                                              {"stop_reason", reason}});
  if (outcome.verdict != Verdict::kPassed) return outcome;
  // Decimals that were rounded to fp32.
  return first_miss({values_miss("logprobs", wanted.at("output_logprobs"), call->logprobs(), {1e-7, 0})});
}

Outcome check_runs(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto got = algo::summarise_versions(integers_of(in.at("versions")), mask_of(in.at("loss_mask")));
  Json runs = Json::array();
  for (const algo::VersionRun& run : got.runs) runs.push_back({run.version, run.tokens});
  return expect_equal(vector.at("expected"), {{"head", got.head}, {"tail", got.tail}, {"rle", runs}});
}

}  // namespace

void add_rollout(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "interaction.row", check_row});
  registry.push_back({"spec_examples", "interaction.concat_turn_ids", check_turns});
  registry.push_back({"spec_examples", "interaction.reward_discount", check_discount});
  registry.push_back({"spec_examples", "interaction.retry_orphans", check_orphans});
  registry.push_back({"spec_examples", "generation.validate_result", check_generated});
  registry.push_back({"spec_examples", "version_pin.agenerate", check_call});
  registry.push_back({"spec_examples", "version_pin.head_tail_rle", check_runs});
}

}  // namespace areal::vectors
