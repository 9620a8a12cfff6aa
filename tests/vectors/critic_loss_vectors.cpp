// Vectors of the critic's loss.
#include <nlohmann/json.hpp>

#include "engine/algo/critic_loss.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/policy_inputs.h"

namespace areal::vectors {
namespace {

using algo::CriticLoss;
using algo::Statistics;

Outcome check_critic(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto distance = algo::value_distance_from(inputs.at("loss_fn_type").get<std::string>());
  if (!distance) return expect_equal(true, vector.contains("error"));
  if (inputs.at("value").at("dtype") != "float32") return skipped("values of another type than fp32 do not compile");
  const auto values = floats_of(inputs.at("value"));
  const auto old_values = floats_of(inputs.at("old_value"));
  const auto targets = floats_of(inputs.at("target_value"));
  std::vector<std::uint8_t> mask(values.size(), 1);
  if (!inputs.at("loss_mask").is_null()) mask = mask_of(inputs.at("loss_mask"));
  algo::ValueElements elements{values, old_values, targets, std::nullopt};
  if (!inputs.at("loss_mask").is_null()) elements.mask = mask;
  CriticLoss got;
  const auto status = algo::critic_loss({inputs.at("value_eps_clip"), *distance}, elements, Statistics::kFill, got);
  if (!status) return failed(status.error().detail);
  const Json& outputs = vector.at("outputs");
  // The reference divides 0 by 0 where nothing is kept; ours is 0.
  const bool is_empty = algo::count(mask) == 0;
  const Json wanted = is_empty ? Json(0.0) : outputs.at("loss");
  if (is_empty && outputs.at("loss").at("data").at(0) != "nan")
    return failed("an empty mask without the reference's NaN");
  return first_miss({value_miss("loss", wanted, static_cast<double>(got.loss), kReduced),
                     gradient_miss(outputs.at("grad_value"), got.gradient, mask, kReduced),
                     values_miss("stat.loss", outputs.at("stat").at("loss"), got.element_loss, kReduced),
                     flags_miss("clip_mask", outputs.at("stat").at("clip_mask"), got.is_clipped)});
}

Outcome check_critic_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto values = flat_floats(inputs.at("value"));
  const auto old_values = flat_floats(inputs.at("old_value"));
  const auto targets = flat_floats(inputs.at("target"));
  const auto mask = flat_mask(inputs.at("loss_mask"));
  CriticLoss got;
  const auto status =
      algo::critic_loss({inputs.at("eps")}, {values, old_values, targets, algo::Mask(mask)}, Statistics::kFill, got);
  if (!status) return failed(status.error().detail);
  return first_miss(
      {value_miss("loss", vector.at("expected").at("loss"), static_cast<double>(got.loss), tolerance_of(vector)),
       flags_miss("clip_mask", vector.at("expected").at("clip_mask"), got.is_clipped)});
}

}  // namespace

void add_critic_loss(std::vector<Checker>& registry) {
  registry.push_back({"ppo_critic_loss", "ppo_critic_loss_fn", check_critic});
  registry.push_back({"spec_examples", "loss.critic", check_critic_example});
}

}  // namespace areal::vectors
