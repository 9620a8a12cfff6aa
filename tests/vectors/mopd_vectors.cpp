// Worked examples of multi-teacher distillation: mixture, targets, loss, its oracle, composition, plan, engine.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/mopd_loss.h"
#include "engine/algo/mopd_mixture.h"
#include "engine/algo/mopd_plan.h"
#include "engine/algo/mopd_target.h"
#include "engine/algo/teacher_residency.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

Outcome check_mixture(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto policy = algo::mixture_policy_from(in.at("policy").get<std::string>());
  if (!policy) return failed("unknown policy");
  const auto mixture = algo::Mixture::create(*policy, in.at("source_sizes").get<std::vector<std::uint64_t>>());
  if (!mixture) return failed(mixture.error().detail);
  Json index = Json::array();
  for (std::uint64_t at = 0; at < mixture.value().length(); ++at) {
    const algo::MixtureRow row = mixture.value().at(at);
    index.push_back({row.source, row.row});
  }
  return expect_equal(vector.at("expected"), {{"index", index}, {"length", mixture.value().length()}});
}

Outcome check_aggregate(const Json& vector) {
  std::vector<std::vector<float>> logp;
  for (const Json& one : vector.at("inputs").at("contributions")) logp.push_back(floats_of(one.at("logp")));
  std::vector<algo::TeacherScore> scores;
  for (const Json& one : vector.at("inputs").at("contributions")) {
    scores.push_back({logp[scores.size()], one.at("weight").get<double>()});
  }
  const auto target = algo::mopd_target(scores);
  if (!target) return failed(target.error().detail);
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({values_miss("logp_sum", wanted.at("logp_sum"), target.value().logp_sum, tolerance),
                     values_miss("weight_sum", wanted.at("weight_sum"), target.value().weight_sum, tolerance)});
}

Outcome check_loss(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::vector<float> now = floats_of(in.at("logprobs"));
  const std::vector<float> behaviour = floats_of(in.at("old_logprobs"));
  const std::vector<float> logp_sum = floats_of(in.at("teacher_logp_sum"));
  const std::vector<float> weight_sum = floats_of(in.at("teacher_weight_sum"));
  const std::vector<std::uint8_t> mask = mask_of(in.at("loss_mask"));
  algo::MopdTokens<float> tokens{now, behaviour, logp_sum, weight_sum, mask, std::nullopt};
  std::vector<std::uint8_t> normalization;
  if (in.contains("normalization_mask")) {
    normalization = mask_of(in.at("normalization_mask"));
    tokens.normalization = normalization;
  }
  const auto got = algo::mopd_loss(tokens, in.at("importance_ratio_cap"));
  if (!got) return failed(got.error().detail);
  const algo::MopdLoss& loss = got.value();
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({value_miss("loss", wanted.at("loss"), loss.loss, tolerance),
                     values_miss("gradient", wanted.at("grad_logprobs"), loss.gradient, tolerance),
                     values_miss("weight", wanted.at("importance_weight"), loss.importance_weight, tolerance),
                     values_miss("score", wanted.at("score_reward"), loss.score, tolerance),
                     values_miss("per_token", wanted.at("per_token"), loss.reverse_kl, tolerance),
                     values_miss("reverse_kl", wanted.at("reverse_kl"), loss.reverse_kl, tolerance)});
}

std::vector<double> log_softmax(const std::vector<double>& logits) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  std::vector<double> logp;
  for (const double logit : logits) logp.push_back(logit - std::log(sum));
  return logp;
}

// Each word of the vocabulary as a token that was drawn from the current policy: the expectation of the loss is the
// weighted divergence, and that of its gradient is the divergence's gradient.
Outcome check_oracle(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::vector<double> logp = log_softmax(doubles_of(in.at("logits")));
  const std::size_t words = logp.size();
  std::vector<double> logp_sum(words, 0.0);
  double weight_sum = 0;
  for (std::size_t teacher = 0; teacher < in.at("weights").size(); ++teacher) {
    const double weight = in.at("weights")[teacher];
    const std::vector<double> own = doubles_of(in.at("teacher_logp")[teacher]);
    for (std::size_t word = 0; word < words; ++word) logp_sum[word] += weight * own[word];
    weight_sum += weight;
  }
  const std::vector<double> weights(words, weight_sum);
  const std::vector<std::uint8_t> mask(words, 1);
  const auto got = algo::mopd_loss<double>({logp, logp, logp_sum, weights, mask, std::nullopt}, 5.0);
  if (!got) return failed(got.error().detail);
  double divergence = 0;
  std::vector<double> gradient(words, 0.0);
  for (std::size_t word = 0; word < words; ++word) {
    const double chance = std::exp(logp[word]);
    const double slope = got.value().gradient[word] * static_cast<double>(words);  // Of this token alone.
    divergence += chance * got.value().reverse_kl[word];
    for (std::size_t logit = 0; logit < words; ++logit) {
      gradient[logit] += chance * slope * ((logit == word ? 1.0 : 0.0) - std::exp(logp[logit]));
    }
  }
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({value_miss("divergence", wanted.at("weighted_reverse_kl"), divergence, tolerance),
                     values_miss("gradient", wanted.at("grad_logits"), gradient, tolerance)});
}

algo::MopdCoefficients coefficients_of(const Json& in) {
  return {in.at("rl_coefficient").get<double>(), in.at("distillation_coefficient").get<double>()};
}

Outcome check_compose(const Json& vector) {
  const Json& in = vector.at("inputs");
  const double total =
      algo::compose_mopd(coefficients_of(in), number_of(in.at("rl_loss")), number_of(in.at("mopd_loss")));
  return first_miss({value_miss("total", vector.at("expected").at("total"), total, tolerance_of(vector))});
}

Outcome check_plan(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto method = algo::proximal_method_from(in.at("prox_logp_method").get<std::string>());
  if (!method) return failed("unknown method");
  const auto plan = algo::mopd_plan({.coefficients = coefficients_of(in),
                                     .reference_and_kl = in.at("has_ref_and_kl"),
                                     .critic = true,
                                     .m2_filter = in.at("m2_enabled"),
                                     .rejection = in.at("rejection_enabled"),
                                     .proximal = {.decoupled_loss = in.at("use_decoupled_loss"),
                                                  .recompute_logprob = in.at("recompute_logprob"),
                                                  .method = *method}});
  if (!plan) return failed(plan.error().detail);
  return expect_equal(vector.at("expected"), {{"requires_teacher_scoring", plan.value().teacher_scoring},
                                              {"requires_rl", plan.value().rl},
                                              {"requires_ref", plan.value().reference},
                                              {"requires_critic", plan.value().critic},
                                              {"requires_prox_logp", plan.value().proximal_logp}});
}

std::string act_text(const algo::TeacherAct& act) {
  switch (act.kind) {
    case algo::TeacherActKind::kCreate:
      return fmt::format("create:{}", act.teacher);
    case algo::TeacherActKind::kLoadWeights:
      return fmt::format("load:{}", act.teacher);
    case algo::TeacherActKind::kOnload:
      return "onload";
    case algo::TeacherActKind::kOffload:
      return "offload";
    case algo::TeacherActKind::kDestroy:
      return "destroy";
  }
  return {};
}

Outcome check_manager(const Json& vector) {
  algo::TeacherResidency residency;
  Json events = Json::array();
  for (const Json& json : vector.at("inputs").at("calls")) {
    const std::string call = json;
    const std::string argument = call.find(':') == std::string::npos ? "" : call.substr(call.find(':') + 1);
    Result<std::vector<algo::TeacherAct>> acts =
        residency.state() == algo::TeacherState::kClosed || call == "close" ? residency.close()
        : call.starts_with("load:")                                         ? residency.load(argument)
                                                                            : residency.release(argument == "complete");
    if (!acts) {
      events.push_back("error:RuntimeError");
      continue;
    }
    for (const algo::TeacherAct& act : acts.value()) events.push_back(act_text(act));
  }
  const std::string state(enum_names(residency.state())[static_cast<std::size_t>(residency.state())]);
  return expect_equal(vector.at("expected"), {{"events", events}, {"state", state}});
}

}  // namespace

void add_mopd(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "mopd.mixture", check_mixture});
  registry.push_back({"spec_examples", "mopd.aggregate", check_aggregate});
  registry.push_back({"spec_examples", "mopd.loss", check_loss});
  registry.push_back({"spec_examples", "mopd.reverse_kl_oracle", check_oracle});
  registry.push_back({"spec_examples", "mopd.compose", check_compose});
  registry.push_back({"spec_examples", "mopd.execution_plan", check_plan});
  registry.push_back({"spec_examples", "mopd.teacher_manager", check_manager});
}

}  // namespace areal::vectors
