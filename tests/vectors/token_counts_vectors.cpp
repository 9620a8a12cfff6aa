// Worked examples of how many tokens a loss counts, and of how old they are.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/policy_tokens.h"
#include "engine/algo/version_staleness.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

Outcome check_token_counts(const Json& vector) {
  const auto got = algo::token_counts(mask_of(flat(vector.at("inputs").at("loss_mask"))));
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({value_miss("n_total", wanted.at("n_total"), got.total, {}),
                     value_miss("n_valid", wanted.at("n_valid"), got.valid, {}),
                     value_miss("n_masked", wanted.at("n_masked"), got.masked, {}),
                     value_miss("masked_token_ratio", wanted.at("masked_token_ratio"), got.masked_ratio, tolerance)});
}

std::string age_miss(const Json& wanted, const algo::Summary& got, Tolerance tolerance) {
  return values_miss("avg, max, min", Json::array({wanted.at("avg"), wanted.at("max"), wanted.at("min")}),
                     std::vector<double>{got.average, got.most, got.least}, tolerance);
}

Outcome check_staleness(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto got =
      algo::version_staleness(integers_of(in.at("versions")), mask_of(in.at("mask")), in.at("current_version"));
  if (!got) return failed("no token has a version");
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({age_miss(wanted.at("sample_staleness_theta"), got->theta, tolerance),
                     age_miss(wanted.at("sample_staleness_proximal"), got->proximal, tolerance)});
}

}  // namespace

void add_token_counts(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "stats.mask_ratio", check_token_counts});
  registry.push_back({"spec_examples", "stats.version_staleness", check_staleness});
}

}  // namespace areal::vectors
