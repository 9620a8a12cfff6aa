// What the two topics with AdamW vectors have in common.
#pragma once
#include <string>

#include "engine/delta/adamw.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {

// The settings of the step, with the rate that it used.
delta::AdamWSettings settings_of(const Json& inputs);

// The step forward from *_prev and grad: first moments and roundings are exact, weights and second moments within 2
// fp32 neighbours, which is the stated tolerance. Empty if all fits.
std::string forward_miss(const Json& vector);

// The step backward and the change masks made from it: every field of the outputs, bit for bit. Empty if all fits.
std::string inversion_miss(const Json& vector);

}  // namespace areal::vectors
