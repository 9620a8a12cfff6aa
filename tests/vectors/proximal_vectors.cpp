// Vectors of proximal log-probabilities: approximations, resolution, weights, errors and staleness.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/algo/loss_statistics.h"
#include "engine/algo/proximal.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

Outcome check_approximations(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  if (inputs.at("old_logp").at("dtype") != "float32") return skipped("log-probabilities of bfloat16 do not compile");
  std::vector<std::string> misses;
  const Json& outputs = vector.at("outputs");
  const Json& method = inputs.at("method");
  if (!method.is_null() && !algo::proximal_approximation_from(method.get<std::string>())) {
    return expect_equal(outputs, Json::object());
  }
  for (const auto& [name, wanted] : outputs.items()) {
    const auto how = algo::proximal_approximation_from(name);
    if (!how) return failed(fmt::format("no approximation {}", name));
    const auto got =
        algo::approximate_proximal(*how, floats_of(inputs.at("old_logp")), floats_of(inputs.at("logprobs")),
                                   integers_of(inputs.at("versions")), inputs.at("current_version"));
    misses.push_back(values_miss(name, wanted, got, kWithExp));
  }
  return first_miss(misses);
}

// The reference's ValueError is kInvalid, its RuntimeError kCorrupt.
Outcome compare_error(const Json& wanted, const Error& error) {
  return expect_equal(wanted.at("type"), error.code == Errc::kInvalid ? "ValueError" : "RuntimeError");
}

Outcome check_resolution(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto method = algo::proximal_method_from(inputs.at("prox_logp_method").get<std::string>());
  if (!method) return expect_equal(true, vector.contains("error"));
  const auto old = floats_of(inputs.at("old_logp"));
  const auto logprobs = floats_of(inputs.at("logprobs"));
  std::vector<float> recomputed;
  std::vector<std::int64_t> versions;
  algo::ProximalSources sources{old, logprobs, std::nullopt, std::nullopt, std::nullopt};
  if (!inputs.at("prox_logp_gt").is_null()) sources.recomputed = recomputed = floats_of(inputs.at("prox_logp_gt"));
  if (!inputs.at("versions").is_null()) sources.versions = versions = integers_of(inputs.at("versions"));
  if (!inputs.at("current_version").is_null()) sources.current_version = inputs.at("current_version");
  const auto got = algo::resolve_proximal(*method, sources);
  if (!got)
    return vector.contains("error") ? compare_error(vector.at("error"), got.error()) : failed(got.error().detail);
  if (vector.contains("error")) return failed("no error");
  return first_miss({values_miss("prox_logp", vector.at("outputs").at("prox_logp"), *got, kWithExp)});
}

Outcome check_weights(const Json& vector) {
  const Json& numerator = vector.at("inputs").at("logp_numerator");
  const Json& denominator = vector.at("inputs").at("logp_denominator");
  if (numerator.at("dtype") == "bfloat16") return skipped("log-probabilities of bfloat16 do not compile");
  const auto got = numerator.at("dtype") == "float64"
                       ? algo::importance_weights(doubles_of(numerator), doubles_of(denominator))
                       : algo::importance_weights(floats_of(numerator), floats_of(denominator));
  return first_miss({values_miss("weight", vector.at("outputs").at("weight"), got, kWithExp)});
}

Outcome check_errors(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto got =
      algo::approximation_errors(floats_of(inputs.at("ground_truth")), floats_of(inputs.at("approximation")));
  const Json& outputs = vector.at("outputs");
  return first_miss({values_miss("abs_error", outputs.at("abs_error"), got.absolute, kElementwise),
                     values_miss("rel_error", outputs.at("rel_error"), got.relative, kElementwise),
                     values_miss("squared_error", outputs.at("squared_error"), got.squared, kElementwise)});
}

Outcome check_summary(const Json& vector) {
  const auto got = algo::summary_of(doubles_of(vector.at("inputs").at("tensor")));
  if (vector.contains("error") || !got) return expect_equal(vector.contains("error"), !got.has_value());
  const Json& outputs = vector.at("outputs");
  return first_miss({value_miss("avg", outputs.at("avg"), got->average, kReduced),
                     value_miss("max", outputs.at("max"), got->most, kReduced),
                     value_miss("min", outputs.at("min"), got->least, kReduced)});
}

Outcome check_staleness(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  algo::LossStatistics statistics;
  algo::add_staleness(integers_of(inputs.at("versions")), mask_of(inputs.at("version_metrics_mask")),
                      inputs.at("current_version"), statistics);
  const Json& wanted = vector.at("outputs").at("scalars");
  if (wanted.size() != statistics.scalars.size()) return failed(fmt::format("{} scalars", statistics.scalars.size()));
  std::vector<std::string> misses;
  for (const algo::NamedNumber& scalar : statistics.scalars) {
    misses.push_back(value_miss(scalar.name, wanted.at(scalar.name), scalar.value, kReduced));
  }
  return first_miss(misses);
}

Outcome check_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto how = algo::proximal_approximation_from(inputs.at("method").get<std::string>());
  if (!how) return failed("unknown method");
  const auto versions = integers_of(inputs.at("versions"));
  const std::int64_t current = inputs.at("current_version");
  const auto got = algo::approximate_proximal(*how, floats_of(inputs.at("old_logp")), floats_of(inputs.at("logprobs")),
                                              versions, current);
  std::vector<float> alpha;
  for (const std::int64_t version : versions) alpha.push_back(algo::proximal_alpha(version, current));
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({values_miss("prox_logp", vector.at("expected").at("prox_logp"), got, tolerance),
                     values_miss("alpha", vector.at("expected").at("alpha"), alpha, tolerance)});
}

}  // namespace

void add_proximal(std::vector<Checker>& registry) {
  registry.push_back({"prox_logp", "compute_prox_logp_approximations", check_approximations});
  registry.push_back({"prox_logp", "_resolve_proximal_logp", check_resolution});
  registry.push_back({"prox_logp", "_compute_importance_weight", check_weights});
  registry.push_back({"prox_logp", "_compute_approximation_errors", check_errors});
  registry.push_back({"prox_logp", "_tensor_scalar_stats", check_summary});
  registry.push_back({"prox_logp", "_log_version_staleness_stats", check_staleness});
  registry.push_back({"spec_examples", "loss.prox_approx", check_example});
}

}  // namespace areal::vectors
