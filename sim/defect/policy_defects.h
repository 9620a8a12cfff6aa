// Defects that are wrong answers of a protocol's policy: small pure functions with the signatures of the right ones.
#pragma once
#include "engine/proto/callee.h"
#include "engine/proto/delta_policy.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/pause_gate.h"
#include "engine/proto/router.h"
#include "engine/proto/staleness.h"
#include "engine/proto/train_loop.h"
#include "engine/proto/training_group.h"
#include "engine/proto/update_member.h"
#include "engine/proto/write_lock.h"

namespace areal::sim {

// The pause flag is read at the check: an engine that seems to serve is waited for, parked decodes included; one that
// seems to be paused is written to without a lock. The take comes in a step of its own.
constexpr proto::WriterClaim check_then_lock(const proto::LockView& view) { return {false, !view.paused, true}; }

// A process that runs is sent work.
constexpr bool register_before_sync(const proto::EngineStanding& standing) { return standing.dead == 0; }

// A request that comes again is acted on again ...
constexpr bool repeat_always(const proto::RememberedReply& /*seen*/) { return true; }
// ... also if it leads into the collectives that it is in.
constexpr bool enter_again(proto::MemberPhase phase, const proto::AttemptKey& prepared,
                           const proto::AttemptKey& asked) {
  const bool ready = phase == proto::MemberPhase::kPrepared || phase == proto::MemberPhase::kExecuting;
  return ready && prepared == asked;
}

constexpr bool any_pause_is_enough(const proto::PauseCount& count) { return count.paused > 0; }

// The status of an update is written to the log, and the loop goes on.
constexpr proto::UpdateVerdict ignore_update_error(proto::Outcome /*outcome*/) {
  return proto::UpdateVerdict::kPublish;
}

// Training goes on from a version, and what made it counts for nothing.
constexpr std::int64_t accepted_reset_on_resume(std::int64_t /*version*/, const proto::StalenessLimits& /*limits*/) {
  return 0;
}

// A rank without a shard has no gradients, and so nothing to reduce.
constexpr bool early_return_on_empty(std::uint32_t shards) { return shards != 0; }

// A delta counts when it has left, ...
constexpr bool commit_before_barrier(proto::CountMoment moment, proto::UpdateMode mode) {
  const bool delta = mode == proto::UpdateMode::kDelta;
  return moment == (delta ? proto::CountMoment::kSent : proto::CountMoment::kCommitted);
}
// ... and a full update before it is even packed.
constexpr bool seed_before_transfer(proto::CountMoment moment, proto::UpdateMode mode) {
  const bool full = mode == proto::UpdateMode::kFull;
  return moment == (full ? proto::CountMoment::kDecided : proto::CountMoment::kCommitted);
}

// The rate that a step would have used, if it was skipped.
constexpr bool lr_recorded_on_skip(std::uint64_t /*optimizer_steps*/) { return true; }

// An error ends the pass of the rank that met it, and of nobody else.
constexpr bool early_abort_in_reconstruct(port::Outcome /*inversion*/) { return true; }

// The rounds of a delta are those of the dtypes that this rank has something of.
constexpr bool rounds_from_local_plan(port::Round round, const proto::MemberPass& pass) {
  return round == port::Round::kDense || pass.elements != 0;
}

// A delta is applied to whatever is there, ...
constexpr bool take_any_delta(Version /*base*/, Version /*held*/, bool /*quarantined*/) { return true; }
// ... also if the pair was connected anew since the last one.
constexpr bool remember_across_epochs() { return false; }

// No rename is known, and what has no partner is left out without a word.
class SkipUnmatched final : public proto::NamePolicy {
 public:
  [[nodiscard]] std::string_view engine_name(std::string_view training_name) const override { return training_name; }
  [[nodiscard]] bool refuses_unmatched() const override { return false; }
};

}  // namespace areal::sim
