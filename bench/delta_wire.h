// What coding a delta for the network saves and costs: bytes for each change beside other codes and the entropy, speed
// of coding and decoding on CPUs.
#pragma once
#include <cstdint>

#include "bench/delta_peers.h"

namespace areal::bench {

struct WireWishes {
  std::uint32_t threads = 1;
  int samples = 7;
};

// One row of sizes and one of speeds; false if something was not decoded as it was. `rate`: the step's learning rate.
bool compare_wire_at(double rate, const delta::InversionScalars& inversion, const OptimizerArrays& arrays,
                     const WireWishes& wishes);

}  // namespace areal::bench
