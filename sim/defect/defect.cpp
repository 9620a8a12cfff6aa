#include "sim/defect/defect.h"

#include <algorithm>
#include <array>

#include "sim/defect/delta_defects.h"
#include "sim/defect/group_defects.h"
#include "sim/defect/serving_defects.h"

namespace areal::sim {
namespace {

constexpr std::array kDefects{
    Defect{"accepted_reset_on_resume", "H35", "What was accepted before a recovery is not counted after it.",
           "accepted_reset_on_resume"},
    Defect{"any_pause_is_enough", "GAP-16", "Pausing all engines counts as done when one of them is paused.",
           "any_pause_is_enough"},
    Defect{"bump_version_without_ack", "H46", "A version counts as delivered whatever the engines answer.", "",
           bump_version_without_ack},
    Defect{"check_then_lock", "H03", "The pause flag is checked once, and the writer's lock is taken in a later step.",
           "check_then_lock"},
    Defect{"commit_before_barrier", "H28", "A delta is counted when it was sent, not when it was acknowledged.",
           "commit_before_barrier"},
    Defect{"constant_barrier_key", "H20",
           "Every barrier that ends an update has the same key, so that uses of it are not told apart.", "",
           constant_barrier_key},
    Defect{"early_abort_in_reconstruct", "GAP-12",
           "A rank whose inversion failed leaves out the reductions that remain.", "early_abort_in_reconstruct"},
    Defect{"early_return_on_empty", "H40", "A rank without shards leaves out the reduction of the norm.",
           "early_return_on_empty"},
    Defect{"ignore_update_error", "GAP-02", "An update that failed is published all the same.", "ignore_update_error"},
    Defect{"invert_with_next_lr", "H09", "The last step is undone with the learning rate of the step after it.", "",
           invert_with_next_lr},
    Defect{"listener_ignores_timeout", "H47", "A member of a group never gives up waiting for another.", "",
           listener_ignores_timeout},
    Defect{"lr_recorded_on_skip", "GAP-36",
           "The learning rate of a step that was skipped is taken for the last one used.", "lr_recorded_on_skip"},
    Defect{"no_identity_on_the_wire", "GAP-07", "Nothing on the wire says what a receiver must hold for a delta.",
           "no_identity_on_the_wire", no_identity_on_the_wire},
    Defect{"not_idempotent", "GAP-06", "An update request that comes again is acted on again.", "not_idempotent"},
    Defect{"only_master_waits", "H15", "Only the first training rank waits for the engines to pause.", "",
           only_master_waits},
    Defect{"plan_from_storage_dtype", "H17", "The sender's plan has the stored element type, not the one on the wire.",
           "", plan_from_storage_dtype},
    Defect{"rank_from_engine_index", "H44", "Every rank of an engine claims the engine's number as its rank.", "",
           rank_from_engine_index},
    Defect{"receiver_clones_alias", "H32",
           "An engine keeps a tied head in a copy of its own, which updates of a delta do not reach.",
           "receiver_clones_alias"},
    Defect{"recovery_unsupported", "GAP-11", "Nothing is ever read back from a checkpoint.", "", recovery_unsupported},
    Defect{"register_before_sync", "H06", "An engine gets requests as soon as its processes run.",
           "register_before_sync"},
    Defect{"report_storage_dtype", "H17", "The sender reports the stored element type when it prepares an update.", "",
           report_storage_dtype},
    Defect{"reread_version_on_record", "H08", "The version of an answer is read anew when the answer is recorded.", "",
           reread_version_on_record},
    Defect{"resume_in_finally", "H27", "An engine serves again after an update, also if it was applied in part.", "",
           resume_in_finally},
    Defect{"rounds_from_local_plan", "H24", "Each rank derives the rounds of a delta from what it holds itself.",
           "rounds_from_local_plan"},
    Defect{"seed_before_transfer", "GAP-01", "A full update counts as done before it begins.", "seed_before_transfer"},
    Defect{"skip_unmatched", "H41", "Tensors without a partner on the engine's side are left out without a word.",
           "skip_unmatched"},
    Defect{"version_bump_aborts", "H34", "Telling an engine the new version ends everything that it works on.", "",
           version_bump_aborts},
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
