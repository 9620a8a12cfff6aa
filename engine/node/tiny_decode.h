// How long samples of the small live model are and how they are scored: pseudo-data that is a function of the run's
// seed and the sample alone, so that interruptions and timing do not change it. Pure functions.
#pragma once
#include <cstdint>

#include "engine/config/scenario.h"
#include "engine/port/types.h"

namespace areal::node {

// Tokens that a kGenerate still has to make, counted from its start; at least 1.
std::uint64_t tokens_of_sample(const config::RolloutSettings& rollout, std::uint64_t run_seed,
                               const port::StartCompute& asked);

// Whether the rewards of a sample group differ: groups in which all are equal are rejected.
bool rewards_differ(std::uint64_t run_seed, std::uint64_t sample_group);

}  // namespace areal::node
