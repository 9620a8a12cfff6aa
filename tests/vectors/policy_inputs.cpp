#include "tests/vectors/policy_inputs.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/vectors/examples.h"

namespace areal::vectors {

namespace {

// Of a tensor, of nested lists or of a number alone.
Json flat_of(const Json& values) {
  const Json all = flat(values.is_object() ? values.at("data") : values);
  return all.is_array() ? all : Json::array({all});
}

template <class Value, class From>
Value known(const Json& config, const char* field, const char* otherwise, From from) {
  const std::string name = config.value(field, std::string(otherwise));
  const auto value = from(name);
  if (!value) throw std::invalid_argument(fmt::format("{} is not a {}", name, field));
  return *value;
}

}  // namespace

std::vector<float> flat_floats(const Json& values) { return floats_of(flat_of(values)); }
std::vector<std::uint8_t> flat_mask(const Json& values) { return mask_of(flat_of(values)); }

std::optional<algo::Rows> rows_of(const Json& tensor, const Json& inputs) {
  if (inputs.contains("cu_seqlens") && !inputs.at("cu_seqlens").is_null()) {
    return algo::Rows::packed(int32_of(inputs.at("cu_seqlens")));
  }
  if (tensor.is_object()) {
    const auto shape = shape_of(tensor);
    if (shape.size() == 2) return algo::Rows::padded(shape[0], shape[1]);
    return std::nullopt;
  }
  if (tensor.empty() || !tensor.at(0).is_array()) return std::nullopt;
  return algo::Rows::padded(tensor.size(), tensor.at(0).size());
}

PolicyInputs policy_inputs_of(const Json& inputs) {
  PolicyInputs result;
  const auto floats = [&](const char* field) {
    return inputs.contains(field) ? flat_floats(inputs.at(field)) : std::vector<float>();
  };
  result.logprobs = floats("logprobs");
  result.proximal = floats("proximal_logprobs");
  result.old = floats("old_logprobs");
  result.advantages = floats("advantages");
  result.mask = flat_mask(inputs.at("loss_mask"));
  result.rows = rows_of(inputs.at("logprobs"), inputs);
  return result;
}

algo::RejectionSettings rejection_settings_of(const Json& config) {
  algo::RejectionSettings settings;
  settings.level = known<algo::RejectionLevel>(config, "level", "token", algo::rejection_level_from);
  settings.action = known<algo::RejectionAction>(config, "action", "mask", algo::rejection_action_from);
  settings.metric = known<algo::RejectionMetric>(config, "metric", "ratio", algo::rejection_metric_from);
  settings.aggregate = known<algo::RejectionAggregate>(config, "agg", "mean", algo::rejection_aggregate_from);
  settings.upper = config.at("upper");
  if (config.contains("lower") && !config.at("lower").is_null()) settings.lower = config.at("lower").get<double>();
  return settings;
}

std::optional<algo::RejectionSettings> checked_rejection_of(const Json& config) {
  if (config.is_null()) return std::nullopt;
  const auto settings = algo::checked(rejection_settings_of(config));
  if (!settings) throw std::invalid_argument(settings.error().detail);
  return *settings;
}

std::string gradient_miss(const Json& wanted, const std::vector<float>& got, const std::vector<std::uint8_t>& mask,
                          Tolerance tolerance) {
  Json expected = flat_of(wanted);
  for (std::size_t at = 0; at < mask.size() && at < expected.size(); ++at) {
    if (mask[at] != 0) continue;
    const double leaked = number_of(expected[at]);
    if (leaked != 0 && !std::isnan(leaked)) return fmt::format("the vector has gradient {} at masked {}", leaked, at);
    expected[at] = 0.0;
  }
  return values_miss("gradient", expected, got, tolerance);
}

std::string flags_miss(std::string_view field, const Json& wanted, const std::vector<std::uint8_t>& got) {
  const auto expected = flat_mask(wanted);
  return expected == got ? std::string()
                         : fmt::format("{}: wanted {}, got {}", field, Json(expected).dump(), Json(got).dump());
}

}  // namespace areal::vectors
