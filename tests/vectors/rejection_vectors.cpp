// Vectors of rejection sampling and of the divergence of two coins.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/algo/binary_kl.h"
#include "engine/algo/rejection.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

Outcome compare(const Json& wanted, const algo::Rejection& got, Tolerance weights, Tolerance fraction) {
  return first_miss(
      {flags_miss("loss_mask", wanted.at("loss_mask"), got.kept),
       values_miss("behave_imp_weight", Json(flat_floats(wanted.at("behave_imp_weight"))), got.weights, weights),
       value_miss("filtered_fraction", wanted.at("filtered_fraction"), got.filtered_fraction, fraction)});
}

Outcome check_rejection(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& config = inputs.at("config");
  const bool has_error = vector.contains("error");
  const Json& proximal = inputs.at("proximal_logprobs");
  if (proximal.at("shape").size() > 2) return skipped("tensors of three dimensions cannot be spelled");
  if (!algo::rejection_metric_from(config.at("metric").get<std::string>()) ||
      !algo::rejection_aggregate_from(config.at("agg").get<std::string>())) {
    return expect_equal(true, has_error);
  }
  algo::RejectionSettings settings = rejection_settings_of(config);
  if (inputs.at("config_bypasses_validation") == false) {
    const auto checked = algo::checked(settings);
    if (!checked) return failed(checked.error().detail);
    settings = *checked;
  }
  const auto rows = rows_of(proximal, inputs);
  const auto mask = mask_of(inputs.at("loss_mask"));
  const auto got = algo::apply_rejection(settings, floats_of(proximal), floats_of(inputs.at("old_logprobs")), mask,
                                         rows ? &*rows : nullptr);
  if (has_error || !got) return expect_equal(has_error, !got.has_value());
  return compare(vector.at("outputs"), *got, kWithExp, kFloat64);
}

Outcome check_rejection_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto settings = algo::checked(rejection_settings_of(inputs.at("config")));
  if (!settings) return failed(settings.error().detail);
  const auto rows = rows_of(inputs.at("proximal_logprobs"), inputs);
  const auto mask = flat_mask(inputs.at("loss_mask"));
  const auto got = algo::apply_rejection(*settings, flat_floats(inputs.at("proximal_logprobs")),
                                         flat_floats(inputs.at("old_logprobs")), mask, rows ? &*rows : nullptr);
  if (!got) return failed(got.error().detail);
  const Tolerance tolerance = tolerance_of(vector);
  return compare(vector.at("expected"), *got, tolerance, tolerance);
}

template <class Real>
std::string kl_miss(const Json& wanted, const std::vector<Real>& log_p, const std::vector<Real>& log_q, double epsilon,
                    bool is_double) {
  for (std::size_t at = 0; at < log_p.size(); ++at) {
    const double value = number_of(wanted.at("data").at(at));
    const Tolerance single{3e-6, 3e-7 * std::max(1.0, std::isfinite(value) ? value : 1.0)};
    const double got = static_cast<double>(algo::binary_kl(log_p[at], log_q[at], epsilon));
    const auto miss = value_miss("kl", wanted.at("data").at(at), got, is_double ? kFloat64 : single);
    if (!miss.empty()) return miss;
  }
  return {};
}

Outcome check_binary_kl(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& wanted = vector.at("outputs").at("kl");
  const double epsilon = inputs.at("eps");
  const Json& log_p = inputs.at("log_p");
  const Json& log_q = inputs.at("log_q");
  if (log_p.at("dtype") == "bfloat16") return skipped("bfloat16 values do not compile");
  if (log_p.at("dtype") == "float64") {
    return first_miss({kl_miss(wanted, doubles_of(log_p), doubles_of(log_q), epsilon, true)});
  }
  return first_miss({kl_miss(wanted, floats_of(log_p), floats_of(log_q), epsilon, false)});
}

// Settings that the reference's constructor takes or refuses. A NaN as a bound, which it takes, is refused here:
// nothing would be inside.
Outcome check_settings(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const bool is_refused = vector.contains("error") || (inputs.contains("upper") && inputs.at("upper") == "nan");
  Json config = {{"upper", 5.0}};
  config.update(inputs);
  config["upper"] = number_of(config["upper"]);
  algo::RejectionSettings settings;
  try {
    settings = rejection_settings_of(config);
  } catch (const std::invalid_argument& unknown) {
    return expect_equal(is_refused, true);
  }
  const auto checked = algo::checked(settings);
  if (is_refused || !checked) return expect_equal(is_refused, !checked.has_value());
  const Json& fields = vector.at("outputs").at("fields");
  const bool warns = !vector.at("outputs").at("warned").empty();
  if (warns != !algo::warning_of(settings).empty()) return failed("one side warns");
  return expect_equal(fields, {{"lower", checked->lower ? Json(*checked->lower) : Json()}, {"upper", checked->upper}});
}

}  // namespace

void add_rejection(std::vector<Checker>& registry) {
  registry.push_back({"rejection_sampling", "apply_rejection_sampling", check_rejection});
  registry.push_back({"spec_examples", "loss.rejection_sampling", check_rejection_example});
  registry.push_back({"config_gates", "RejectionSamplingConfig", check_settings});
  registry.push_back({"binary_kl", "compute_binary_kl_divergence", check_binary_kl});
}

}  // namespace areal::vectors
