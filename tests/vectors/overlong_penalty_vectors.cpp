// Vectors of the penalty on overlong answers.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/overlong_penalty.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

template <class Reward>
Outcome check_as(const Json& vector, std::vector<Reward> rewards) {
  const Json& inputs = vector.at("inputs");
  const Sides sides = sides_of(inputs.at("loss_mask"));
  const algo::Rows rows = algo::Rows::padded(sides.rows, sides.width);
  const algo::OverlongPenalty penalty{inputs.at("overlong_tokens"), number_of(inputs.at("overlong_penalty_factor")),
                                      inputs.at("max_response_length")};
  algo::add_overlong_penalty(penalty, rows, mask_of(inputs.at("loss_mask")), std::span<Reward>(rewards));
  return first_miss({values_miss("rewards", vector.at("outputs").at("rewards"), rewards, kElementwise)});
}

Outcome check_penalty(const Json& vector) {
  if (vector.contains("error")) return skipped("rewards are not whole numbers by type");
  const Json& rewards = vector.at("inputs").at("rewards");
  if (rewards.at("dtype") == "float64") return check_as<double>(vector, doubles_of(rewards));
  return check_as<float>(vector, floats_of(rewards));
}

}  // namespace

void add_overlong_penalty(std::vector<Checker>& registry) {
  registry.push_back({"overlong_penalty", "reward_overlong_penalty", check_penalty});
}

}  // namespace areal::vectors
