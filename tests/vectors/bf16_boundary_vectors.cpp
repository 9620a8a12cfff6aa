// Vectors of rounding to bf16.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/delta/bf16.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

Outcome check_rounding(const Json& vector) {
  Json rounded = Json::array();
  for (const Json& item : vector.at("inputs").at("fp32")) {
    const auto bits = static_cast<std::uint32_t>(std::stoul(item.get<std::string>(), nullptr, 16));
    rounded.push_back(fmt::format("{:04x}", delta::bf16_from_bits(bits)));
  }
  return expect_equal(vector.at("outputs"), {{"bf16", rounded}});
}

}  // namespace

void add_bf16_boundary(std::vector<Checker>& registry) {
  registry.push_back({"bf16_boundary", "round_bf16", check_rounding});
}

}  // namespace areal::vectors
