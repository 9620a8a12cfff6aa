// Looks variables up by a name and its older names.
#include "engine/config/environment.h"

#include <algorithm>

namespace areal::config {

const std::string* Environment::find(std::string_view name) const {
  const auto place = std::ranges::find(variables_, name, &Variable::name);
  return place == variables_.end() ? nullptr : &place->value;
}

void Environment::set(std::string_view name, std::string_view value) {
  const auto place = std::ranges::find(variables_, name, &Variable::name);
  if (place == variables_.end()) {
    variables_.push_back({std::string(name), std::string(value)});
  } else {
    place->value = value;
  }
}

std::optional<std::string_view> find_variable(const Environment& environment, const VariableNames& names) {
  const auto usable = [&](std::string_view name) -> const std::string* {
    const std::string* value = environment.find(name);
    return value != nullptr && (names.blank_is_set || !trimmed(*value).empty()) ? value : nullptr;
  };
  if (const std::string* value = usable(names.name)) return *value;
  for (const std::string_view fallback : names.fallbacks) {
    if (const std::string* value = usable(fallback)) return *value;
  }
  return std::nullopt;
}

bool is_truthy(std::string_view value, std::span<const std::string_view> truthy) {
  return std::ranges::find(truthy, lower_case(value)) != truthy.end();
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace areal::config
