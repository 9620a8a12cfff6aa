// Defects that are wrong answers of a protocol's policy: small pure functions with the signatures of the right ones.
#pragma once
#include "engine/proto/callee.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/pause_gate.h"
#include "engine/proto/router.h"
#include "engine/proto/train_loop.h"
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

// No rename is known, and what has no partner is left out without a word.
class SkipUnmatched final : public proto::NamePolicy {
 public:
  [[nodiscard]] std::string_view engine_name(std::string_view training_name) const override { return training_name; }
  [[nodiscard]] bool refuses_unmatched() const override { return false; }
};

}  // namespace areal::sim
