#include "engine/algo/mopd_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace areal::algo {

namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_file_name(std::string_view id) {
  return !id.empty() && is_letter_or_digit(id.front()) &&
         std::ranges::all_of(id, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-'; });
}

bool at_least_zero(double value) { return std::isfinite(value) && value >= 0; }

Status check_teachers(const std::vector<MopdTeacher>& teachers) {
  if (teachers.empty()) return Error{Errc::kInvalid, "no teachers"};
  for (std::size_t at = 0; at < teachers.size(); ++at) {
    const std::string& id = teachers[at].id;
    if (!is_file_name(id)) return Error{Errc::kInvalid, fmt::format("teacher '{}': not safe as a file name", id)};
    if (id == "actor") return Error{Errc::kInvalid, "a teacher cannot be called 'actor'"};
    if (teachers[at].path.empty()) return Error{Errc::kInvalid, fmt::format("teacher '{}' has no path", id)};
    for (std::size_t before = 0; before < at; ++before) {
      if (teachers[before].id == id) return Error{Errc::kInvalid, fmt::format("teacher '{}' stands twice", id)};
    }
  }
  return Unit{};
}

Status check_route(const MopdRoute& route, const std::vector<MopdTeacher>& teachers) {
  if (route.name.empty()) return Error{Errc::kInvalid, "a route has no name"};
  bool positive = false;
  for (std::size_t at = 0; at < route.weights.size(); ++at) {
    const auto& [teacher, weight] = route.weights[at];
    if (std::ranges::none_of(teachers, [&](const MopdTeacher& known) { return known.id == teacher; })) {
      return Error{Errc::kInvalid, fmt::format("route '{}': there is no teacher '{}'", route.name, teacher)};
    }
    if (!at_least_zero(weight)) {
      return Error{Errc::kInvalid, fmt::format("route '{}': the weight of '{}' is {}", route.name, teacher, weight)};
    }
    for (std::size_t before = 0; before < at; ++before) {
      if (route.weights[before].teacher == teacher) {
        return Error{Errc::kInvalid, fmt::format("route '{}': teacher '{}' stands twice", route.name, teacher)};
      }
    }
    positive = positive || weight > 0;
  }
  if (!positive) return Error{Errc::kInvalid, fmt::format("route '{}' has no weight above 0", route.name)};
  return Unit{};
}

}  // namespace

Status check_mopd(const MopdSettings& settings) {
  AREAL_TRY(check_teachers(settings.teachers));
  if (settings.routes.empty()) return Error{Errc::kInvalid, "no routes"};
  for (std::size_t at = 0; at < settings.routes.size(); ++at) {
    AREAL_TRY(check_route(settings.routes[at], settings.teachers));
    for (std::size_t before = 0; before < at; ++before) {
      if (settings.routes[before].name == settings.routes[at].name) {
        return Error{Errc::kInvalid, fmt::format("route '{}' stands twice", settings.routes[at].name)};
      }
    }
  }
  AREAL_TRY(check_coefficients(settings.coefficients));
  if (!at_least_zero(settings.importance_ratio_cap) || settings.importance_ratio_cap == 0) {
    return Error{Errc::kInvalid, fmt::format("the ratio's cap is {}", settings.importance_ratio_cap)};
  }
  return Unit{};
}

Result<std::vector<RouteWeight>> teachers_of(const MopdSettings& settings, std::string_view route) {
  const auto found = std::ranges::find_if(settings.routes, [&](const MopdRoute& known) { return known.name == route; });
  if (found == settings.routes.end()) return Error{Errc::kInvalid, fmt::format("there is no route '{}'", route)};
  std::vector<RouteWeight> needed;
  for (const MopdTeacher& teacher : settings.teachers) {
    for (const RouteWeight& weight : found->weights) {
      if (weight.teacher == teacher.id && weight.weight > 0) needed.push_back(weight);
    }
  }
  return needed;
}

}  // namespace areal::algo
