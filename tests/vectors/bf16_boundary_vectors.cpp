// Vectors of rounding to bf16 and of nearness to a rounding boundary.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/delta/bf16.h"
#include "engine/delta/change_mask.h"
#include "tests/vectors/hex_floats.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

Outcome check_rounding(const Json& vector) {
  Json rounded = Json::array();
  for (const Json& item : vector.at("inputs").at("fp32")) {
    rounded.push_back(fmt::format("{:04x}", delta::bf16_from_bits(bits_of_hex(item))));
  }
  return expect_equal(vector.at("outputs"), {{"bf16", rounded}});
}

Outcome check_mask(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::vector<float> olds = floats_of_hex(in.at("old_fp32"));
  Json mask = Json::array();
  for (std::size_t i = 0; i < olds.size(); ++i) {
    const auto current = static_cast<std::uint16_t>(bits_of_hex(in.at("cur_bf16").at(i)));
    mask.push_back(delta::near_rounding_boundary(olds[i], current, in.at("margin_rel")) ? 1 : 0);
  }
  const std::string miss = list_miss("mask", vector.at("outputs").at("mask"), mask);
  return miss.empty() ? passed() : failed(miss);
}

Outcome check_example(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::uint16_t current = delta::to_bf16(in.at("cur_bf16"));
  return expect_equal(vector.at("expected"),
                      {{"include", delta::bf16_changed(in.at("old_fp32"), current, in.at("margin_rel"))},
                       {"lower_neighbor", delta::from_bf16(delta::bf16_below(current))},
                       {"upper_neighbor", delta::from_bf16(delta::bf16_above(current))}});
}

}  // namespace

void add_bf16_boundary(std::vector<Checker>& registry) {
  registry.push_back({"bf16_boundary", "round_bf16", check_rounding});
  registry.push_back({"bf16_boundary", "_bf16_rounding_boundary_mask", check_mask});
  registry.push_back({"spec_examples", "delta.bf16_boundary", check_example});
}

}  // namespace areal::vectors
