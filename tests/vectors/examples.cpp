#include "tests/vectors/examples.h"

#include <nlohmann/json.hpp>

namespace areal::vectors {

Tolerance example_tolerance(const Json& vector) {
  return {vector.at("tol").at("rtol").get<double>(), vector.at("tol").at("atol").get<double>()};
}

Json flattened(const Json& lists) {
  Json flat = Json::array();
  for (const Json& item : lists) {
    if (!item.is_array()) {
      flat.push_back(item);
      continue;
    }
    for (const Json& inner : flattened(item)) flat.push_back(inner);
  }
  return flat;
}

std::string refusal_miss(const Json& vector, bool refused) {
  const bool wanted =
      vector.contains("error") || (vector.contains("expected") && vector.at("expected").contains("error"));
  if (wanted == refused) return {};
  return wanted ? "wanted an error" : "refused";
}

}  // namespace areal::vectors
