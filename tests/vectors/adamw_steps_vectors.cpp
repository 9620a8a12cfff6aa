// Vectors of the forward AdamW step. Their inverted fields belong to the inversion of a step and are not looked at
// here.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/delta/adamw.h"
#include "engine/delta/bf16.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

// Allowed distance of weights and second moments in fp32 neighbours; first moments are exact.
constexpr std::int64_t kTolerance = 2;

std::vector<float> floats(const Json& hex) {
  std::vector<float> values;
  for (const Json& item : hex) {
    values.push_back(
        std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(item.get<std::string>(), nullptr, 16))));
  }
  return values;
}

// The place of a value among all fp32 values in order; both zeros have one place.
std::int64_t place(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::int64_t magnitude = bits & 0x7FFFFFFF;
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

// The first element that is too far from what is wanted, or an empty text.
std::string first_miss(std::string_view field, const std::vector<float>& wanted, const std::vector<float>& got,
                       std::int64_t tolerance) {
  if (wanted.size() != got.size()) return fmt::format("{} has {} elements, not {}", field, got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::abs(place(wanted[i]) - place(got[i])) <= tolerance) continue;
    return fmt::format("{}[{}]: wanted {:08x}, got {:08x}", field, i, std::bit_cast<std::uint32_t>(wanted[i]),
                       std::bit_cast<std::uint32_t>(got[i]));
  }
  return {};
}

std::string bf16_miss(std::string_view field, const Json& wanted, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string got = fmt::format("{:04x}", delta::to_bf16(values[i]));
    if (got != wanted.at(i)) return fmt::format("{}[{}]: wanted {}, got {}", field, i, wanted.at(i).dump(), got);
  }
  return {};
}

Outcome check_step(const Json& vector) {
  const Json& in = vector.at("inputs");
  const delta::AdamWSettings settings{in.at("lr_used"), in.at("weight_decay"), in.at("beta1"), in.at("beta2"),
                                      in.at("eps")};
  std::vector<float> weights = floats(in.at("p_prev"));
  std::vector<float> exp_avg = floats(in.at("exp_avg_prev"));
  std::vector<float> exp_avg_sq = floats(in.at("exp_avg_sq_prev"));
  const std::vector<float> gradients = floats(in.at("grad"));
  const std::vector<float> before = weights;
  delta::adamw_step(delta::adamw_scalars(settings, in.at("step")), {weights, exp_avg, exp_avg_sq, gradients});
  const std::vector<float> after = floats(in.at("p_now"));
  for (const std::string& miss : {first_miss("exp_avg", floats(in.at("exp_avg")), exp_avg, 0),
                                  first_miss("exp_avg_sq", floats(in.at("exp_avg_sq")), exp_avg_sq, kTolerance),
                                  first_miss("p_now", after, weights, kTolerance),
                                  bf16_miss("true_prev_bf16", vector.at("outputs").at("true_prev_bf16"), before),
                                  bf16_miss("cur_bf16", vector.at("outputs").at("cur_bf16"), after)}) {
    if (!miss.empty()) return failed(miss);
  }
  return passed();
}

}  // namespace

void add_adamw_steps(std::vector<Checker>& registry) {
  registry.push_back({"adamw_steps", "AdamW.step+invert_adamw", check_step});
}

}  // namespace areal::vectors
