#include "tests/vectors/examples.h"

#include <nlohmann/json.hpp>

namespace areal::vectors {

Json flat(const Json& nested) {
  if (!nested.is_array()) return nested;
  Json all = Json::array();
  for (const Json& item : nested) {
    const Json inner = flat(item);
    if (inner.is_array()) {
      all.insert(all.end(), inner.begin(), inner.end());
    } else {
      all.push_back(inner);
    }
  }
  return all;
}

Sides sides_of(const Json& nested) {
  if (nested.is_object()) {
    const std::vector<std::size_t> shape = shape_of(nested);
    Sides sides{shape.at(0), 1};
    for (std::size_t at = 1; at < shape.size(); ++at) sides.width *= shape[at];
    return sides;
  }
  if (nested.empty() || !nested.front().is_array()) return {nested.size(), 1};
  return {nested.size(), nested.front().size()};
}

Tolerance tolerance_of(const Json& vector) {
  const Json& tol = vector.at("tol");
  return {number_of(tol.at("rtol")), number_of(tol.at("atol"))};
}

std::string refusal_miss(const Json& vector, bool refused) {
  const bool wanted =
      vector.contains("error") || (vector.contains("expected") && vector.at("expected").contains("error"));
  if (wanted == refused) return {};
  return wanted ? "wanted an error" : "refused";
}

}  // namespace areal::vectors
