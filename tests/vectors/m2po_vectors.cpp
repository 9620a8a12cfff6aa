// Vectors of M2PO's mask.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/algo/m2po.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

Outcome check_sorted(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto falling = floats_of(inputs.at("sorted_m2"));
  std::vector<std::uint8_t> mask(falling.size(), 1);
  std::fill_n(mask.begin(), algo::m2po_dropped(falling, inputs.at("m2_threshold")), std::uint8_t{0});
  return first_miss({flags_miss("mask", vector.at("outputs").at("mask"), mask)});
}

// Ours drops the earlier of equals first, as the reference's sort did here: ties are compared like everything else.
Outcome compare(const Json& inputs, const Json& wanted) {
  const auto mask = flat_mask(inputs.at("loss_mask"));
  const auto got = algo::m2po_mask(flat_floats(inputs.at("old_logp")), flat_floats(inputs.at("prox_logp")), mask,
                                   inputs.at("m2_threshold"));
  if (!got) return failed(got.error().detail);
  return first_miss({flags_miss("loss_mask", wanted, *got)});
}

Outcome check_mask(const Json& vector) { return compare(vector.at("inputs"), vector.at("outputs").at("loss_mask")); }
Outcome check_example(const Json& vector) {
  return compare(vector.at("inputs"), vector.at("expected").at("loss_mask"));
}

}  // namespace

void add_m2po(std::vector<Checker>& registry) {
  registry.push_back({"m2po", "_get_m2po_loss_mask", check_sorted});
  registry.push_back({"m2po", "_apply_m2po_masking", check_mask});
  registry.push_back({"spec_examples", "loss.m2po_mask", check_example});
}

}  // namespace areal::vectors
