#include "sim/explore/defect_policies.h"

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text.h"
#include "sim/defect/policy_defects.h"

namespace areal::sim {
namespace {

std::vector<std::string_view> defect_names() {
  std::vector<std::string_view> names;
  for (const Defect& defect : all_defects()) names.push_back(defect.name);
  return names;
}

RoomPolicies policies_of(std::string_view policy) {
  RoomPolicies policies;
  if (policy == "accepted_reset_on_resume") policies.recovered = accepted_reset_on_resume;
  if (policy == "any_pause_is_enough") policies.pause = any_pause_is_enough;
  if (policy == "check_then_lock") policies.lock = check_then_lock;
  if (policy == "ignore_update_error") policies.after_update = ignore_update_error;
  if (policy == "receiver_clones_alias") policies.aliases = node::AliasStorage::kCloned;
  if (policy == "register_before_sync") policies.eligible = register_before_sync;
  if (policy == "skip_unmatched") policies.names = std::make_shared<const SkipUnmatched>();
  if (policy == "early_return_on_empty") policies.reduces = early_return_on_empty;
  if (policy == "commit_before_barrier") policies.delta.counts = commit_before_barrier;
  if (policy == "seed_before_transfer") policies.delta.counts = seed_before_transfer;
  if (policy == "lr_recorded_on_skip") policies.delta.records_rate = lr_recorded_on_skip;
  if (policy == "early_abort_in_reconstruct") policies.delta.leaves = early_abort_in_reconstruct;
  if (policy == "rounds_from_local_plan") policies.delta.enters = rounds_from_local_plan;
  if (policy == "no_identity_on_the_wire") {
    policies.delta.holds = take_any_delta;
    policies.delta.forgets = remember_across_epochs;
  }
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
    return Error{Errc::kInvalid, "there is no defect '" + std::string(name) + "'" + did_you_mean(name, defect_names())};
  }
  return DefectParts{rules_of(*defect), policies_of(defect->policy)};
}

}  // namespace areal::sim
