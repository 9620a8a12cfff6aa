// Vectors of the Kullback-Leibler estimators.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/kl_estimator.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

Outcome check_kl(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto estimator = algo::kl_estimator_from(inputs.at("kl_estimator").get<std::string>());
  if (vector.contains("error")) return expect_equal(true, !estimator.has_value());
  if (!estimator) return failed("unknown estimator");
  const auto kl = algo::kl_estimate(*estimator, inputs.at("apply_clamp"), floats_of(inputs.at("log_probs")),
                                    floats_of(inputs.at("log_probs_base")));
  // k3 is a difference of nearly equal numbers where both log-probabilities agree.
  constexpr Tolerance kTolerance{3e-6, 3e-7};
  return first_miss({values_miss("kl", vector.at("outputs").at("kl"), kl, kTolerance)});
}

Outcome check_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto estimator = algo::kl_estimator_from(inputs.at("estimator").get<std::string>());
  if (!estimator) return failed("unknown estimator");
  const auto kl = algo::kl_estimate(*estimator, inputs.at("clamp"), floats_of(inputs.at("log_probs")),
                                    floats_of(inputs.at("log_probs_base")));
  return first_miss({values_miss("kl", vector.at("expected").at("kl"), kl, tolerance_of(vector))});
}

}  // namespace

void add_kl_estimator(std::vector<Checker>& registry) {
  registry.push_back({"kl_estimator", "KLEstimator", check_kl});
  registry.push_back({"spec_examples", "gae.kl_estimator", check_example});
}

}  // namespace areal::vectors
