#include "tests/vectors/tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace areal::vectors {

namespace {

const Json& list_of(const Json& json) { return json.is_object() ? json.at("data") : json; }

template <class Value>
std::vector<Value> values_of(const Json& tensor) {
  std::vector<Value> values;
  for (const Json& value : list_of(tensor)) values.push_back(static_cast<Value>(number_of(value)));
  return values;
}

bool near(double wanted, double got, Tolerance tolerance) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (std::isinf(wanted) || std::isinf(got)) return wanted == got;
  return std::abs(wanted - got) <= tolerance.absolute + tolerance.relative * std::abs(wanted);
}

}  // namespace

double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  const std::string& text = json.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw std::invalid_argument("not a number: " + text);
}

std::vector<std::size_t> shape_of(const Json& tensor) { return tensor.at("shape").get<std::vector<std::size_t>>(); }
std::vector<float> floats_of(const Json& tensor) { return values_of<float>(tensor); }
std::vector<double> doubles_of(const Json& tensor) { return values_of<double>(tensor); }
std::vector<std::int64_t> integers_of(const Json& tensor) { return values_of<std::int64_t>(tensor); }
std::vector<std::int32_t> int32_of(const Json& tensor) { return values_of<std::int32_t>(tensor); }

std::vector<std::uint8_t> mask_of(const Json& tensor) {
  std::vector<std::uint8_t> mask;
  for (const Json& value : list_of(tensor)) mask.push_back(number_of(value) != 0 ? 1 : 0);
  return mask;
}

std::string values_miss(std::string_view field, const Json& wanted, std::span<const double> got, Tolerance tolerance) {
  const std::vector<double> values = values_of<double>(wanted);
  if (values.size() != got.size()) return fmt::format("{}: wanted {} values, got {}", field, values.size(), got.size());
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (!near(values[at], got[at], tolerance)) {
      return fmt::format("{}[{}]: wanted {}, got {}", field, at, values[at], got[at]);
    }
  }
  return {};
}

std::string values_miss(std::string_view field, const Json& wanted, std::span<const float> got, Tolerance tolerance) {
  return values_miss(field, wanted, std::vector<double>(got.begin(), got.end()), tolerance);
}

std::string value_miss(std::string_view field, const Json& wanted, double got, Tolerance tolerance) {
  const bool one_element = wanted.is_object();
  return values_miss(field, one_element ? wanted : Json::array({wanted}), std::span<const double>(&got, 1), tolerance);
}

Outcome first_miss(const std::vector<std::string>& misses) {
  for (const std::string& miss : misses) {
    if (!miss.empty()) return failed(miss);
  }
  return passed();
}

}  // namespace areal::vectors
