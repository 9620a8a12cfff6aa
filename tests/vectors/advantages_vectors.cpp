// Vectors of the whole preparation of advantages, in both formats.
//
// Beside the expected values, each case must not depend on what stands at elements that are not trained; and where the
// vector has a divergence without a reference policy, that must be refused unless it is asked for.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/advantages.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

using algo::AdvantageConfig;

algo::NormConfig norm_of(const Json& json) {
  algo::NormConfig norm;
  const auto level = [&](const char* key, algo::NormLevel absent) {
    if (!json.contains(key)) return absent;
    if (json.at(key).is_null()) return algo::NormLevel::kNone;
    return algo::norm_level_from(json.at(key).get<std::string>()).value();
  };
  norm.mean_level = level("mean_level", norm.mean_level);
  norm.std_level = level("std_level", norm.std_level);
  norm.leave_one_out = json.value("mean_leave1out", false);
  norm.group_size = json.value("group_size", 1);
  return norm;
}

algo::LambdaRule lambda_of(const Json& config) {
  if (!config.contains("gae_lambda")) return {};
  const Json& lambda = config.at("gae_lambda");
  if (lambda.is_object()) return algo::lambda_rule_from("relative_position", lambda.at("q")).value();
  if (lambda.is_number() || lambda == "inf") return {algo::LambdaKind::kConstant, number_of(lambda)};
  const Json& arguments = config.at("gae_lambda_kwargs");
  return algo::lambda_rule_from(lambda.get<std::string>(), arguments.begin().value().get<double>()).value();
}

AdvantageConfig config_of(const Json& json) {
  AdvantageConfig config;
  config.no_eos = algo::NoEos::kWidth;
  config.kl_ctl = json.value("kl_ctl", config.kl_ctl);
  config.kl_estimator = algo::kl_estimator_from(json.value("kl_estimator", "k1")).value();
  config.discount = json.value("discount", config.discount);
  config.lambda = lambda_of(json);
  config.time_step = algo::time_step_from(json.value("gae_timestep_unit", "token")).value();
  config.is_decoupled = json.value("use_decoupled_loss", false);
  config.is_recomputed = json.value("recompute_logprob", false);
  config.mask_no_eos_with_zero = json.value("mask_no_eos_with_zero", false);
  config.reward_bias = json.value("reward_bias", config.reward_bias);
  config.reward_scaling = json.value("reward_scaling", config.reward_scaling);
  config.reward_clip = json.value("reward_clip", config.reward_clip);
  if (json.contains("reward_norm")) config.reward_norm = norm_of(json.at("reward_norm"));
  if (json.contains("adv_norm")) config.adv_norm = norm_of(json.at("adv_norm"));
  if (json.contains("overlong_tokens")) {
    config.overlong = {json.at("overlong_tokens"), json.at("overlong_penalty_factor"), json.at("max_new_tokens")};
  }
  return config;
}

struct Case {
  explicit Case(const Json& inputs)
      : config(config_of(inputs.at("config"))), rows(rows_of(inputs.at("data").at("loss_mask"))) {
    const Json& data = inputs.at("data");
    rewards = floats_of(data.at("rewards"));
    attention = mask_of(flat(data.at("attention_mask")));
    trained = mask_of(flat(data.at("loss_mask")));
    behaviour = floats_of(flat(data.at("logprobs")));
    if (data.contains("prox_logp")) proximal = floats_of(flat(data.at("prox_logp")));
    if (data.contains("ref_logp")) reference = floats_of(flat(data.at("ref_logp")));
    if (data.contains("values")) values = floats_of(flat(data.at("values")));
    if (data.contains("turn_ids")) turn_ids = int32_of(flat(data.at("turn_ids")));
    if (inputs.contains("group_sizes") && !inputs.at("group_sizes").is_null()) {
      group_sizes = inputs.at("group_sizes").get<std::vector<std::int64_t>>();
    }
  }

  static algo::Rows rows_of(const Json& mask) {
    const Sides sides = sides_of(mask);
    return algo::Rows::padded(sides.rows, sides.width);
  }

  [[nodiscard]] Result<algo::Advantages> run() const {
    algo::AdvantageInput input{rows, rewards, attention, trained, behaviour, {}, {}, {}, {}, {}, {}};
    if (!proximal.empty()) input.proximal = proximal;
    if (!reference.empty()) input.reference = reference;
    if (!values.empty()) input.values = values;
    if (!turn_ids.empty()) input.turn_ids = turn_ids;
    if (!group_sizes.empty()) input.group_sizes = group_sizes;
    return algo::prepare_advantages(config, input);
  }

  // NaN wherever nothing may be read. A value that a cut off row bootstraps from stays.
  void spoil(const algo::Advantages& good) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t at = 0; at < trained.size(); ++at) {
      if (trained[at] == 0) behaviour[at] = kNan;
      if (good.trained[at] != 0) continue;
      if (!proximal.empty()) proximal[at] = kNan;
      if (!reference.empty()) reference[at] = kNan;
      if (!values.empty() && (at + 1) % rows.length(0) != 0) values[at] = kNan;
    }
  }

  AdvantageConfig config;
  algo::Rows rows;
  std::vector<float> rewards, behaviour, proximal, reference, values;
  std::vector<std::uint8_t> attention, trained;
  std::vector<std::int32_t> turn_ids;
  std::vector<std::int64_t> group_sizes;
};

Outcome compare(const Json& wanted, const algo::Advantages& got, Tolerance tolerance) {
  std::vector<float> mask(got.trained.begin(), got.trained.end());
  const auto miss = [&](const char* field, const std::vector<float>& values) {
    return wanted.contains(field) ? values_miss(field, flat(wanted.at(field)), values, tolerance) : "";
  };
  return first_miss({miss("scaled_rewards", got.rewards), miss("logprobs", got.old), miss("loss_mask", mask),
                     miss("kl_rewards", got.kl_rewards), miss("tot_rewards", got.total_rewards),
                     miss("returns", got.returns), miss("advantages", got.advantages)});
}

Outcome check_case(const Json& vector, const Json& wanted, Tolerance tolerance) {
  Case made(vector.at("inputs"));
  if (made.config.kl_ctl > 0 && made.reference.empty()) {
    if (made.run()) return failed("a divergence from no reference is not refused");
    made.config.kl_without_reference = true;
  }
  const auto got = made.run();
  if (!got) return failed(got.error().detail);
  if (const Outcome outcome = compare(wanted, *got, tolerance); outcome.verdict != Verdict::kPassed) return outcome;
  made.spoil(*got);
  const auto again = made.run();
  if (!again) return failed(again.error().detail);
  if (again->advantages != got->advantages) return failed("a value at an element that is not trained leaks");
  return expect_equal(Json(got->old), Json(again->old));
}

Outcome check_whole(const Json& vector) {
  if (vector.contains("error")) return expect_equal(false, Case(vector.at("inputs")).run().has_value());
  const Json& config = vector.at("inputs").at("config");
  const bool is_normalized = config.contains("adv_norm") || config.contains("reward_norm");
  return check_case(vector, vector.at("outputs"), is_normalized ? kNormalized : kGaeRecursion);
}

Outcome check_example(const Json& vector) { return check_case(vector, vector.at("expected"), tolerance_of(vector)); }

}  // namespace

void add_advantages(std::vector<Checker>& registry) {
  registry.push_back({"compute_advantages", "PPOActor._compute_advantages", check_whole});
  registry.push_back({"spec_examples", "gae.compute_advantages", check_example});
}

}  // namespace areal::vectors
