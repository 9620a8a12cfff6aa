// Vectors of direct preference optimization.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/algo/dpo_loss.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

constexpr Tolerance kSums{1e-10, 1e-15};

std::vector<double> flat(const std::vector<algo::Pair>& pairs) {
  std::vector<double> values;
  for (const algo::Pair& pair : pairs) values.insert(values.end(), pair.begin(), pair.end());
  return values;
}

// Where the reference multiplied a masked infinity by 0, its sum is a NaN, and ours must be a number.
std::string sums_miss(std::string_view field, const Json& wanted, const std::vector<double>& got, bool is_poisoned) {
  Json expected = wanted.at("data");
  int leaked = 0;
  for (std::size_t at = 0; is_poisoned && at < expected.size() && at < got.size(); ++at) {
    if (expected[at] != "nan" || !std::isfinite(got[at])) continue;
    expected[at] = got[at];
    ++leaked;
  }
  if (is_poisoned && field == "policy_logps" && leaked == 0) return "the reference leaked nothing that ours keeps out";
  return values_miss(field, expected, got, kSums);
}

Outcome check_pairs(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto rows = algo::Rows::packed(int32_of(inputs.at("cu_seqlens")));
  const auto mask = mask_of(inputs.at("loss_mask"));
  const auto valid = mask_of(inputs.at("valid_pairs"));
  const auto got = algo::pair_log_ratios(rows, floats_of(inputs.at("logprobs")), floats_of(inputs.at("ref_logprobs")),
                                         mask, algo::Mask(valid));
  if (vector.contains("error") || !got) return expect_equal(vector.contains("error"), !got.has_value());
  const Json& outputs = vector.at("outputs");
  const bool is_poisoned = vector.at("name") == "nonfinite_at_masked";
  if (is_poisoned && flat(got->policy) != std::vector<double>{-1.0, -1.0}) return failed("not the kept tokens' sums");
  const std::vector<double> ones(got->policy.size(), 1.0);
  return first_miss(
      {sums_miss("policy_logps", outputs.at("policy_logps"), flat(got->policy), is_poisoned),
       sums_miss("ref_logps", outputs.at("ref_logps"), flat(got->reference), is_poisoned),
       values_miss("completion_lens", outputs.at("completion_lens"), flat(got->completion_tokens), kFloat64),
       values_miss("gradient", outputs.at("grad_sum_chosen_minus_rejected"),
                   algo::pair_gradient(rows, mask, algo::Mask(valid), ones), kReduced)});
}

Outcome check_preference(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto loss = algo::preference_loss_from(inputs.at("loss_type").get<std::string>());
  if (!loss) return expect_equal(true, vector.contains("error"));
  std::vector<double> losses;
  std::vector<double> slopes;
  for (const double logit : doubles_of(inputs.at("logits"))) {
    const auto term = algo::preference_term(*loss, inputs.at("beta"), logit);
    losses.push_back(static_cast<double>(static_cast<float>(term.loss)));
    slopes.push_back(term.slope);
  }
  return first_miss({values_miss("loss", vector.at("outputs").at("loss"), losses, kReduced),
                     values_miss("gradient", vector.at("outputs").at("grad_logits"), slopes, kReduced)});
}

}  // namespace

void add_dpo(std::vector<Checker>& registry) {
  registry.push_back({"dpo", "dpo_pair_logratios", check_pairs});
  registry.push_back({"dpo", "dpo_preference_loss", check_preference});
}

}  // namespace areal::vectors
