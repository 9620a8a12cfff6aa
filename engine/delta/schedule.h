// Who meets whom, and when, in the exchange of a delta: recursive halving over all ranks of the transfer world.
//
// Round r (from 0) cuts the world into blocks of world / 2^r consecutive ranks, each block into two halves; a rank
// meets every rank of the other half of its block. Phase 0: the first half sends, the second receives; phase 1: the
// reverse. Inside a phase peers are met in ascending order. Every ordered pair of ranks meets exactly once, which holds
// for powers of two only (spec/transfer.md 1.11, INV-DELTA-POW2). Pure functions; no threads, no state.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/result.h"

namespace areal::delta {

struct Meeting {
  std::uint32_t peer = 0;
  std::uint32_t round = 0;
  std::uint32_t phase = 0;
  bool sends = false;  // This rank sends to `peer`; else it receives.
  constexpr bool operator==(const Meeting&) const = default;
};

// Refuses a world that is no power of two; a world of one rank is one, with no meetings.
Status check_schedule_world(std::uint32_t world);

// All meetings of `rank` in their order: 2 * (world - 1). Refuses what check_schedule_world refuses, and a rank
// outside.
Result<std::vector<Meeting>> recursive_schedule(std::uint32_t world, std::uint32_t rank);

// Two for each round: phase 0 and phase 1. REQUIRES: check_schedule_world accepts `world`.
std::uint32_t schedule_slots(std::uint32_t world);

// Where in the order of all rounds and phases `sender` meets `receiver`: 2 * round + phase.
// REQUIRES: check_schedule_world accepts `world`; two different ranks inside it.
std::uint32_t schedule_slot(std::uint32_t world, std::uint32_t sender, std::uint32_t receiver);

}  // namespace areal::delta
