// Times of what every simulated event pays for: hashing words, records, tables and state digests.
#pragma once
#include "engine/base/digest.h"

namespace areal::bench {

// The chained results of one small pass over every workload, equal on every compiler and machine, so that a fast answer
// is also the right one.
Digest128 core_digest();

}  // namespace areal::bench
