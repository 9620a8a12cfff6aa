// Vectors of the whole loss of a micro-batch, of a single teacher, and of how micro-batches are scaled.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/algo/grpo_loss.h"
#include "engine/algo/loss_scale.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

template <class Value>
std::optional<Value> optional_of(const Json& inputs, const char* field) {
  if (!inputs.contains(field) || inputs.at(field).is_null()) return std::nullopt;
  return inputs.at(field).get<Value>();
}

algo::GrpoSettings settings_of(const Json& inputs, algo::ProximalMethod method) {
  algo::GrpoSettings settings;
  settings.clip = inputs.at("eps_clip");
  settings.clip_higher = optional_of<double>(inputs, "eps_clip_higher");
  settings.dual_clip = optional_of<double>(inputs, "c_clip");
  settings.level = algo::ratio_level_from(inputs.at("importance_sampling_level").get<std::string>()).value();
  settings.rejection = checked_rejection_of(inputs.at("rejection_sampling"));
  settings.m2_threshold = optional_of<double>(inputs, "m2_threshold");
  settings.method = method;
  settings.current_version = optional_of<std::int64_t>(inputs, "current_version");
  settings.is_decoupled = inputs.at("use_decoupled_loss");
  settings.uses_sapo = inputs.at("use_sapo_loss");
  settings.uses_cispo = inputs.at("use_cispo_loss");
  settings.tau_of_gain = inputs.at("sapo_tau_pos");
  settings.tau_of_loss = inputs.at("sapo_tau_neg");
  return settings;
}

Outcome check_grpo(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto method = algo::proximal_method_from(inputs.at("prox_logp_method").get<std::string>());
  if (!method) return expect_equal(true, vector.contains("error"));
  const Json& data = inputs.at("input_data");
  const auto logprobs = floats_of(inputs.at("logprobs"));
  const auto old = floats_of(data.at("logprobs"));
  const auto advantages = floats_of(data.at("advantages"));
  const auto mask = mask_of(data.at("loss_mask"));
  const auto rows = rows_of(inputs.at("logprobs"), data);
  std::vector<float> recomputed;
  std::vector<float> teacher;
  std::vector<std::int64_t> versions;
  algo::GrpoTokens tokens;
  tokens.logprobs = logprobs;
  tokens.old = old;
  tokens.advantages = advantages;
  tokens.mask = mask;
  tokens.rows = rows ? &*rows : nullptr;
  if (data.contains("prox_logp")) tokens.recomputed = recomputed = floats_of(data.at("prox_logp"));
  if (data.contains("versions")) tokens.versions = versions = integers_of(data.at("versions"));
  if (data.contains("teacher_logp")) tokens.teacher = teacher = floats_of(data.at("teacher_logp"));
  tokens.weights.policy = data.value("rl_loss_weight", tokens.weights.policy);
  tokens.weights.teacher = data.value("distill_loss_weight", tokens.weights.teacher);
  const auto got = algo::grpo_loss(settings_of(inputs, *method), tokens);
  if (vector.contains("error") || !got) return expect_equal(vector.contains("error"), !got.has_value());
  const Json& outputs = vector.at("outputs");
  return first_miss({value_miss("loss", outputs.at("loss"), static_cast<double>(got->joint.loss), kReduced),
                     gradient_miss(outputs.at("grad_logprobs"), got->joint.gradient, mask, kReduced)});
}

Outcome check_teacher(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto logprobs = floats_of(inputs.at("logprobs"));
  const auto mask = mask_of(inputs.at("loss_mask"));
  algo::PolicyLoss joint;
  joint.loss = inputs.at("rl_loss");
  joint.gradient.assign(logprobs.size(), 0.0F);
  const algo::DistillationWeights weights{inputs.at("rl_loss_weight"), inputs.at("distill_loss_weight")};
  const auto status = algo::distil(weights, logprobs, floats_of(inputs.at("old_logp")),
                                   floats_of(inputs.at("teacher_logp")), mask, joint);
  if (!status) return failed(status.error().detail);
  const Json& expected = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  std::vector<std::string> misses = {
      value_miss("loss", expected.at("loss"), static_cast<double>(joint.loss), tolerance)};
  if (expected.contains("grad_logprobs")) {
    misses.push_back(gradient_miss(expected.at("grad_logprobs"), joint.gradient, mask, tolerance));
  }
  return first_miss(misses);
}

Outcome check_scale(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  double total = 0;
  for (const Json& rank : inputs.at("ranks")) {
    for (const Json& tokens : rank) total += tokens.get<double>();
  }
  const Json& expected = vector.at("expected");
  std::vector<std::string> misses = {value_miss("total_weight", expected.at("total_weight"), total, kFloat64)};
  double mean = 0;
  for (std::size_t rank = 0; rank < inputs.at("ranks").size(); ++rank) {
    std::vector<double> scaled;
    for (std::size_t batch = 0; batch < inputs.at("ranks")[rank].size(); ++batch) {
      const auto scale = algo::loss_scale(inputs.at("ranks")[rank][batch], total, inputs.at("dp_size"));
      if (!scale) return failed(scale.error().detail);
      scaled.push_back(*scale * inputs.at("local_mean_losses")[rank][batch].get<double>());
      mean += scaled.back() / inputs.at("dp_size").get<double>();
    }
    misses.push_back(values_miss(fmt::format("scaled[{}]", rank), expected.at("scaled")[rank], scaled, kFloat64));
  }
  misses.push_back(value_miss("mean", expected.at("global_mean_after_dp_average"), mean, kFloat64));
  return first_miss(misses);
}

}  // namespace

void add_grpo_loss(std::vector<Checker>& registry) {
  registry.push_back({"grpo_loss", "grpo_loss_fn", check_grpo});
  registry.push_back({"spec_examples", "loss.legacy_teacher", check_teacher});
  registry.push_back({"spec_examples", "engine.loss_scale", check_scale});
}

}  // namespace areal::vectors
