// Vectors of AdamW steps, forward and backward, and the worked examples of the same.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/delta/adamw.h"
#include "engine/delta/inversion.h"
#include "tests/vectors/adamw_checks.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

Outcome check_step(const Json& vector) {
  for (const std::string& miss : {forward_miss(vector), inversion_miss(vector)}) {
    if (!miss.empty()) return failed(miss);
  }
  return passed();
}

// Worked examples are float64; elements here are fp32, and a step takes a few roundings.
std::string example_miss(std::string_view field, double wanted, float got) {
  constexpr double kRelative = 4.0 / (1 << 24);
  if (std::abs(got - wanted) <= kRelative * std::abs(wanted)) return {};
  return fmt::format("{}: wanted {}, got {}", field, wanted, got);
}

delta::AdamWSettings example_settings(const Json& in) {
  return {.learning_rate = in.at("lr"),
          .weight_decay = in.at("weight_decay"),
          .beta1 = in.at("beta1"),
          .beta2 = in.at("beta2"),
          .epsilon = in.at("eps")};
}

Outcome check_example_steps(const Json& vector) {
  const Json& in = vector.at("inputs");
  const delta::AdamWSettings settings = example_settings(in);
  delta::AdamWPowers powers;
  delta::AdamWElement element{in.at("param"), 0, 0};
  for (const Json& wanted : vector.at("expected").at("trace")) {
    const float gradient = in.at("grads").at(powers.steps());
    element = delta::adamw_element(powers.next(settings), element, gradient);
    for (const std::string& miss : {example_miss("param", wanted.at("param"), element.weight),
                                    example_miss("exp_avg", wanted.at("exp_avg"), element.exp_avg),
                                    example_miss("exp_avg_sq", wanted.at("exp_avg_sq"), element.exp_avg_sq)}) {
      if (!miss.empty()) return failed(miss);
    }
  }
  return powers.steps() == in.at("grads").size() ? passed() : failed("the trace has another length");
}

Outcome check_example_inversion(const Json& vector) {
  const Json& in = vector.at("inputs");
  const delta::InversionScalars scalars = delta::inversion_scalars(example_settings(in), in.at("step"));
  const float previous = delta::invert_adamw(scalars, in.at("param"), in.at("exp_avg"), in.at("exp_avg_sq"));
  const std::string miss = example_miss("previous_param", vector.at("expected").at("previous_param"), previous);
  return miss.empty() ? passed() : failed(miss);
}

}  // namespace

void add_adamw_steps(std::vector<Checker>& registry) {
  registry.push_back({"adamw_steps", "AdamW.step+invert_adamw", check_step});
  registry.push_back({"spec_examples", "optim.adamw", check_example_steps});
  registry.push_back({"spec_examples", "optim.adamw_invert", check_example_inversion});
}

}  // namespace areal::vectors
