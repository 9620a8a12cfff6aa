// Decisions that a rank takes on its own in an update by deltas: the seats of its policies, with the product's answers.
//
// Small pure functions, given at construction.
#pragma once
#include <cstdint>

#include "engine/port/types.h"
#include "engine/proto/member_plan.h"
#include "engine/proto/messages.h"

namespace areal::proto {

// What has just happened to an attempt at its sender.
enum class CountMoment : std::uint8_t { kDecided, kSent, kCommitted };
// Whether the tracker counts the attempt now. The product: when the receivers have acknowledged it, and an attempt that
// fails leaves the tracker as it was (spec/transfer.md 1.12).
using CountPolicy = bool (*)(CountMoment moment, UpdateMode mode);
constexpr bool count_when_committed(CountMoment moment, UpdateMode /*mode*/) {
  return moment == CountMoment::kCommitted;
}

// Whether the learning rate of a training step is the one to undo, given its optimizer steps. A skipped step used none.
using RatePolicy = bool (*)(std::uint64_t optimizer_steps);
constexpr bool rate_of_made_steps(std::uint64_t optimizer_steps) { return optimizer_steps > 0; }

// Whether a rank whose inversion failed leaves out the windows that are left. The product: never, its copies wait in
// the reductions (INV-DELTA-COLL-COUNT).
using LeavePolicy = bool (*)(Outcome inversion);
constexpr bool never_leave(Outcome /*inversion*/) { return false; }

// Whether a rank enters a round of one of the passes that all ranks have agreed on. The product: every one, also with
// nothing to send or receive (INV-DELTA-DTYPE-ROUNDS).
using RoundPolicy = bool (*)(port::Round round, const MemberPass& pass);
constexpr bool enter_every_round(port::Round /*round*/, const MemberPass& /*pass*/) { return true; }

// Whether a receiver can take a delta to `base`, given the version that it holds. The product: only if it holds exactly
// that, and its weights are not refused (INV-4).
using HoldPolicy = bool (*)(Version base, Version held, bool quarantined);
constexpr bool hold_the_base(Version base, Version held, bool quarantined) { return base == held && !quarantined; }

// Whether a sender's next update is full because the epoch of its pair has ended. The product: always, since a rank
// that was replaced holds something else.
using EpochEndPolicy = bool (*)();
constexpr bool forget_what_they_hold() { return true; }

struct DeltaPolicies {
  CountPolicy counts = count_when_committed;
  RatePolicy records_rate = rate_of_made_steps;
  LeavePolicy leaves = never_leave;
  RoundPolicy enters = enter_every_round;
  HoldPolicy holds = hold_the_base;
  EpochEndPolicy forgets = forget_what_they_hold;
};

}  // namespace areal::proto
