#include "sim/explore/defect_policies.h"

#include "engine/base/text.h"
#include "sim/defect/policy_defects.h"

namespace areal::sim {
namespace {

std::string nearest_name(std::string_view name) {
  const Defect* nearest = nullptr;
  for (const Defect& defect : all_defects()) {
    if (nearest == nullptr || edit_distance(name, defect.name) < edit_distance(name, nearest->name)) nearest = &defect;
  }
  return std::string(nearest->name);
}

RoomPolicies policies_of(std::string_view policy) {
  RoomPolicies policies;
  if (policy == "any_pause_is_enough") policies.pause = any_pause_is_enough;
  if (policy == "check_then_lock") policies.lock = check_then_lock;
  if (policy == "ignore_update_error") policies.after_update = ignore_update_error;
  if (policy == "register_before_sync") policies.eligible = register_before_sync;
  if (policy == "skip_unmatched") policies.names = std::make_shared<const SkipUnmatched>();
  if (policy == "not_idempotent") {
    policies.repeats = repeat_always;
    policies.may_enter = enter_again;
  }
  return policies;
}

}  // namespace

Result<DefectParts> parts_of_defect(std::string_view name) {
  const Defect* defect = find_defect(name);
  if (defect == nullptr) {
    return Error{Errc::kInvalid,
                 "there is no defect '" + std::string(name) + "'; did you mean '" + nearest_name(name) + "'?"};
  }
  return DefectParts{rules_of(*defect), policies_of(defect->policy)};
}

}  // namespace areal::sim
