// Vectors of the policy losses: PPO, SAPO and CISPO, with gradients and statistics.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/algo/cispo_loss.h"
#include "engine/algo/ppo_loss.h"
#include "engine/algo/sapo_loss.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

using algo::PolicyLoss;
using algo::Statistics;

std::optional<double> optional_number(const Json& inputs, const char* field) {
  if (!inputs.contains(field) || inputs.at(field).is_null()) return std::nullopt;
  return inputs.at(field).get<double>();
}

void collect_behaviour(const Json& stat, const algo::BehaviourStatistics& behaviour, std::vector<std::string>& misses) {
  misses.push_back(values_miss("behave_approx_kl", stat.at("behave_approx_kl"), behaviour.log_ratio, kElementwise));
  misses.push_back(values_miss("behave_imp_weight", stat.at("behave_imp_weight"), behaviour.weights, kWithExp));
  misses.push_back(flags_miss("behave_mask", stat.at("behave_mask"), behaviour.kept));
  misses.push_back(
      value_miss("filtered_fraction", stat.at("filtered_fraction"), behaviour.filtered_fraction, kFloat64));
}

void collect_counts(const Json& stat, algo::Mask mask, std::vector<std::string>& misses) {
  const algo::TokenCounts counts = algo::token_counts(mask);
  misses.push_back(value_miss("n_total_tokens", stat.at("n_total_tokens"), counts.total, kFloat64));
  misses.push_back(value_miss("n_valid_tokens", stat.at("n_valid_tokens"), counts.valid, kFloat64));
  misses.push_back(value_miss("n_masked_tokens", stat.at("n_masked_tokens"), counts.masked, kFloat64));
  misses.push_back(value_miss("masked_token_ratio", stat.at("masked_token_ratio"), counts.masked_ratio, kFloat64));
}

Outcome compare(const Json& vector, const Result<Unit>& status, const PolicyLoss& got,
                const std::vector<std::uint8_t>& mask) {
  if (vector.contains("error")) return expect_equal(true, !status.has_value());
  if (!status) return failed(status.error().detail);
  const Json& outputs = vector.at("outputs");
  const Json& stat = outputs.at("stat");
  const algo::TokenStatistics& statistics = got.statistics;
  std::vector<std::string> misses = {
      value_miss("loss", outputs.at("loss"), static_cast<double>(got.loss), kReduced),
      gradient_miss(outputs.at("grad_logprobs"), got.gradient, mask, kReduced),
      values_miss("stat.loss", stat.at("loss"), statistics.loss, kReduced),
      values_miss("importance_weight", stat.at("importance_weight"), statistics.ratio, kWithExp),
      values_miss("approx_kl", stat.at("approx_kl"), statistics.log_ratio, kElementwise),
      flags_miss("clip_mask", stat.at("clip_mask"), statistics.is_clipped),
      flags_miss("dual_clip_mask", stat.at("dual_clip_mask"), statistics.is_dual_clipped)};
  const bool has_behaviour = stat.contains("behave_mask");
  if (has_behaviour != statistics.behaviour.has_value()) return failed("rejection's statistics: one side lacks them");
  if (has_behaviour) collect_behaviour(stat, *statistics.behaviour, misses);
  if (stat.contains("n_total_tokens")) collect_counts(stat, mask, misses);
  if (stat.contains("sapo_soft_gate")) {
    misses.push_back(values_miss("sapo_soft_gate", stat.at("sapo_soft_gate"), statistics.gate, kWithExp));
    misses.push_back(
        values_miss("sapo_scaled_gate_pos", stat.at("sapo_scaled_gate_pos"), statistics.gate_of_gain, kWithExp));
    misses.push_back(
        values_miss("sapo_scaled_gate_neg", stat.at("sapo_scaled_gate_neg"), statistics.gate_of_loss, kWithExp));
  }
  return first_miss(misses);
}

Outcome check_ppo(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const PolicyInputs from = policy_inputs_of(inputs);
  const auto level = algo::ratio_level_from(inputs.at("importance_sampling_level").get<std::string>());
  if (!level) return expect_equal(true, vector.contains("error"));
  const algo::PpoSettings settings{inputs.at("eps_clip"), optional_number(inputs, "eps_clip_higher"),
                                   optional_number(inputs, "c_clip"), *level,
                                   checked_rejection_of(inputs.at("rejection_sampling"))};
  PolicyLoss got;
  const auto status = algo::ppo_actor_loss(settings, from.tokens(), Statistics::kFill, got);
  return compare(vector, status, got, from.mask);
}

Outcome check_cispo(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const PolicyInputs from = policy_inputs_of(inputs);
  const algo::CispoSettings settings{inputs.at("eps_clip"), optional_number(inputs, "eps_clip_higher"),
                                     checked_rejection_of(inputs.at("rejection_sampling"))};
  PolicyLoss got;
  const auto status = algo::cispo_loss(settings, from.tokens(), Statistics::kFill, got);
  return compare(vector, status, got, from.mask);
}

Outcome check_sapo(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  PolicyInputs from = policy_inputs_of(inputs);
  from.proximal = from.old;
  const auto level = algo::ratio_level_from(inputs.at("importance_sampling_level").get<std::string>());
  if (!level) return expect_equal(true, vector.contains("error"));
  PolicyLoss got;
  const auto status =
      algo::sapo_loss({inputs.at("tau_pos"), inputs.at("tau_neg"), *level}, from.tokens(), Statistics::kFill, got);
  return compare(vector, status, got, from.mask);
}

// Examples name each expected field as they like; each that is there is compared.
Outcome compare_example(const Json& vector, const Result<Unit>& status, const PolicyLoss& got,
                        const PolicyInputs& from) {
  if (!status) return failed(status.error().detail);
  const Json& expected = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  const algo::TokenStatistics& statistics = got.statistics;
  std::vector<std::string> misses = {value_miss("loss", expected.at("loss"), static_cast<double>(got.loss), tolerance),
                                     gradient_miss(expected.at("grad_logprobs"), got.gradient, from.mask, tolerance)};
  const auto floats = [&](const char* field, const std::vector<float>& values) {
    if (!expected.contains(field)) return;
    const auto wanted = flat_floats(expected.at(field));
    misses.push_back(values_miss(field, Json(wanted), values, tolerance));
  };
  floats("ratio", statistics.ratio);
  floats("per_token", statistics.loss);
  floats("gate", statistics.gate);
  floats("gate_pos", statistics.gate_of_gain);
  floats("gate_neg", statistics.gate_of_loss);
  if (expected.contains("clip_mask")) {
    misses.push_back(flags_miss("clip_mask", expected.at("clip_mask"), statistics.is_clipped));
  }
  if (expected.contains("dual_clip_mask")) {
    misses.push_back(flags_miss("dual_clip_mask", expected.at("dual_clip_mask"), statistics.is_dual_clipped));
  }
  if (expected.contains("kept_mask")) {
    misses.push_back(flags_miss("kept_mask", expected.at("kept_mask"),
                                statistics.behaviour ? statistics.behaviour->kept : from.mask));
  }
  if (expected.contains("filtered_fraction")) {
    misses.push_back(value_miss("filtered_fraction", expected.at("filtered_fraction"),
                                statistics.behaviour ? statistics.behaviour->filtered_fraction : 0.0, tolerance));
  }
  if (expected.contains("behave_imp_weight")) floats("behave_imp_weight", statistics.behaviour.value().weights);
  if (expected.contains("n_total")) {
    const algo::TokenCounts counts = algo::token_counts(from.mask);
    misses.push_back(value_miss("n_total", expected.at("n_total"), counts.total, tolerance));
    misses.push_back(value_miss("n_valid", expected.at("n_valid"), counts.valid, tolerance));
    misses.push_back(value_miss("n_masked", expected.at("n_masked"), counts.masked, tolerance));
    misses.push_back(value_miss("masked_ratio", expected.at("masked_ratio"), counts.masked_ratio, tolerance));
  }
  return first_miss(misses);
}

Outcome check_ppo_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& config = inputs.at("config");
  const PolicyInputs from = policy_inputs_of(inputs);
  const algo::PpoSettings settings{config.at("eps"), optional_number(config, "eps_hi"), optional_number(config, "c"),
                                   algo::ratio_level_from(config.value("level", "token")).value(),
                                   checked_rejection_of(config.value("rs", Json()))};
  PolicyLoss got;
  const auto status = algo::ppo_actor_loss(settings, from.tokens(), Statistics::kFill, got);
  return compare_example(vector, status, got, from);
}

Outcome check_cispo_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const PolicyInputs from = policy_inputs_of(inputs);
  const algo::CispoSettings settings{inputs.at("eps_clip"), optional_number(inputs, "eps_clip_higher"),
                                     checked_rejection_of(inputs.value("rejection_sampling", Json()))};
  PolicyLoss got;
  const auto status = algo::cispo_loss(settings, from.tokens(), Statistics::kFill, got);
  return compare_example(vector, status, got, from);
}

Outcome check_sapo_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  PolicyInputs from = policy_inputs_of(inputs);
  from.proximal = from.old;
  PolicyLoss got;
  const auto level = algo::ratio_level_from(inputs.value("level", "token")).value();
  const auto status =
      algo::sapo_loss({inputs.at("tau_pos"), inputs.at("tau_neg"), level}, from.tokens(), Statistics::kFill, got);
  return compare_example(vector, status, got, from);
}

}  // namespace

void add_policy_loss(std::vector<Checker>& registry) {
  registry.push_back({"ppo_actor_loss", "ppo_actor_loss_fn", check_ppo});
  registry.push_back({"cispo_loss", "cispo_loss_fn", check_cispo});
  registry.push_back({"sapo_loss", "sapo_loss_fn", check_sapo});
  registry.push_back({"spec_examples", "loss.ppo_actor", check_ppo_example});
  registry.push_back({"spec_examples", "loss.cispo", check_cispo_example});
  registry.push_back({"spec_examples", "loss.sapo", check_sapo_example});
}

}  // namespace areal::vectors
