// Teachers, routes and coefficients of multi-teacher distillation, and what is wrong with them.
//
// A route names the teachers that score its samples, each with a weight; weights are not normalised. Teachers and
// routes keep the order in which they were written. Plain values. Source: the configuration of multi-teacher
// distillation.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/algo/mopd_loss.h"
#include "engine/base/result.h"

namespace areal::algo {

struct MopdTeacher {
  std::string id;  // Safe as a file name.
  std::string path;
};

struct RouteWeight {
  std::string teacher;
  double weight = 0;
};

struct MopdRoute {
  std::string name;
  std::vector<RouteWeight> weights;
};

struct MopdSettings {
  std::vector<MopdTeacher> teachers;
  std::vector<MopdRoute> routes;
  MopdCoefficients coefficients;
  double importance_ratio_cap = 5.0;
};

// kInvalid: no teacher or no route; a name twice; an id that is not [A-Za-z0-9][A-Za-z0-9_.-]* or is "actor"; an empty
// path; a route without a name, with an unknown teacher, with a weight that is not finite and at least 0, or without a
// weight above 0; a coefficient that is not finite and at least 0, or both 0; a cap that is not finite and above 0.
Status check_mopd(const MopdSettings& settings);

// The teachers that a sample of this route needs: those with a weight above 0, in the order of the teachers.
// kInvalid: no such route. REQUIRES: check_mopd() accepted the settings.
Result<std::vector<RouteWeight>> teachers_of(const MopdSettings& settings, std::string_view route);

}  // namespace areal::algo
