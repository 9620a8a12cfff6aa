// The optimizer state that benchmarks of the detector run on: B10's distributions, in device memory.
//
// p ~ N(0, 0.02), m ~ U(+-5e-5), v = m^2 U(0.5, 1.5), step 100, betas 0.9 / 0.95, no weight decay. Which share of
// elements changes follows from the learning rate alone, so one state serves all shares.
#pragma once
#include <cstdint>
#include <span>

#include "bench/cuda/measure.h"
#include "engine/delta/cuda/detect.h"
#include "tests/cuda/steps.h"

namespace areal::bench {

struct Workload {
  explicit Workload(std::uint64_t elements);

  DeviceArray<float> weights;
  DeviceArray<float> exp_avg;
  DeviceArray<float> exp_avg_sq;

  // One tensor of the first `elements`, or tensors of `elements` each that follow each other.
  [[nodiscard]] std::vector<delta::cuda::OptimizerTensor> tensors(std::uint64_t elements,
                                                                  std::uint64_t count = 1) const;
};

inline delta::ProvenStep step_with(double learning_rate) { return tests::step_of(learning_rate, 0.0, 0.95, 100); }

// Where a detector's result goes, with room for `room` entries.
struct Lists {
  Lists(std::uint64_t room, std::uint64_t tensors);
  DeviceArray<std::int32_t> narrow;
  DeviceArray<std::int64_t> wide;
  DeviceArray<std::uint16_t> values;
  DeviceArray<std::uint64_t> offsets;
  [[nodiscard]] delta::cuda::ChangeOutput output(bool is_wide) const;
  [[nodiscard]] std::uint64_t total(std::uint64_t tensors) const { return offsets.host(tensors, 1)[0]; }
};

struct Share {
  double wanted = 0;
  double learning_rate = 0;
};

// Learning rates at which the wanted shares of elements are marked, by bisection on the first 2^26 elements.
std::vector<Share> find_shares(const Workload& workload, const Lists& lists, std::span<const double> wanted);

}  // namespace areal::bench
