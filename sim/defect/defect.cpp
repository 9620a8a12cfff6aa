#include "sim/defect/defect.h"

#include <algorithm>
#include <array>

#include "sim/defect/batch_defects.h"

namespace areal::sim {
namespace {

constexpr std::array kDefects{
    Defect{"any_pause_is_enough", "GAP-16", "Pausing all engines counts as done when one of them is paused.",
           "any_pause_is_enough"},
    Defect{"check_then_lock", "H03", "The pause flag is checked once, and the writer's lock is taken in a later step.",
           "check_then_lock"},
    Defect{"constant_barrier_key", "H20",
           "Every barrier of a group has the same key, so that uses of it are not told apart.", "",
           constant_barrier_key},
    Defect{"not_idempotent", "GAP-06", "An update request that comes again is acted on again.", "not_idempotent"},
    Defect{"plan_from_storage_dtype", "H17", "The sender's plan has the stored element type, not the one on the wire.",
           "", plan_from_storage_dtype},
    Defect{"resume_in_finally", "H27", "An engine serves again after an update, also if it was applied in part.",
           "resume_in_finally"},
    Defect{"skip_unmatched", "H41", "Tensors without a partner on the engine's side are left out without a word.",
           "skip_unmatched"},
};
static_assert(std::ranges::is_sorted(kDefects, {}, &Defect::name));

}  // namespace

std::span<const Defect> all_defects() { return kDefects; }

const Defect* find_defect(std::string_view name) {
  const auto place = std::ranges::lower_bound(kDefects, name, {}, &Defect::name);
  return place != kDefects.end() && place->name == name ? &*place : nullptr;
}

std::vector<config::RuleSpec> rules_of(const Defect& defect) {
  return defect.rules == nullptr ? std::vector<config::RuleSpec>{} : defect.rules();
}

}  // namespace areal::sim
