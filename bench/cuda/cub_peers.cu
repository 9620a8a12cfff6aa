// CUB's selections on the detector's data, by the same rule with the same screen before it: DeviceSelect::If over a
// fused transform, and Flagged after a pass that writes flags.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_select.cuh>

#include "bench/cuda/sections.h"
#include "engine/delta/cuda/device_ops.cuh"
#include "tests/cuda/reference.cuh"

namespace areal::bench {
namespace {

using namespace delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file

constexpr std::uint64_t kFlat = 1ULL << 30;

struct State {
  const float* weights;
  const float* exp_avg;
  const float* exp_avg_sq;
};

struct Candidate {
  std::int32_t index;
  std::uint16_t value;
  std::uint16_t marked;
};

// As the detector decides.
__device__ bool is_marked(const ChangeRule& rule, float weight, float exp_avg, float exp_avg_sq,
                          std::uint16_t current) {
  const Screened found = screen(rule, weight, exp_avg, exp_avg_sq, std::uint32_t{current} << 16, FastApproximate{});
  return found == Screened::kChanged ||
         (found == Screened::kUnsure && rule_marks(rule, weight, exp_avg, exp_avg_sq, current));
}

// From an index to what a selection needs to know: the fused part.
struct Look {
  State state;
  ChangeRule rule;
  __device__ Candidate operator()(std::int32_t i) const {
    const float weight = state.weights[i];
    const std::uint16_t current = delta::to_bf16(weight);
    const bool marked = is_marked(rule, weight, state.exp_avg[i], state.exp_avg_sq[i], current);
    return {i, current, static_cast<std::uint16_t>(marked ? 1 : 0)};
  }
};

struct IsMarked {
  __host__ __device__ bool operator()(const Candidate& candidate) const { return candidate.marked != 0; }
};

__global__ void flag_kernel(const State state, const __grid_constant__ ChangeRule rule, std::uint8_t* flags,
                            std::uint64_t elements) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const float weight = state.weights[i];
  flags[i] = is_marked(rule, weight, state.exp_avg[i], state.exp_avg_sq[i], delta::to_bf16(weight)) ? 1 : 0;
}

__global__ void gather_kernel(const float* weights, const std::int32_t* indices, const std::uint64_t* count,
                              std::uint16_t* values) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < *count; i += stride) {
    values[i] = delta::to_bf16(weights[indices[i]]);
  }
}

__global__ void split_kernel(const Candidate* found, const std::uint64_t* count, std::int32_t* indices,
                             std::uint16_t* values) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < *count; i += stride) {
    indices[i] = found[i].index;
    values[i] = found[i].value;
  }
}

struct CubBench {
  Report& report;
  const Workload& workload;
  const Lists& lists;
  const Ceilings& ceilings;
  const Share& share;
  ChangeRule rule;
  State state;
  tests::ChangeHash expected;

  void add(const char* what, const Times& times) {
    const std::uint64_t total = lists.total(0);
    const auto found = tests::list_hash(lists.narrow.data(), lists.values.data(), 0, total);
    report.add(Row("cub", what)
                   .add("elements", kFlat)
                   .add("share", share.wanted)
                   .add("marked", static_cast<double>(total) / static_cast<double>(kFlat))
                   .add(times)
                   .add("of_copy", 12.0 * static_cast<double>(kFlat) / times.median_ms / 1e6 / ceilings.copy));
    report.check("CUB finds the same", found == expected);
  }

  void select_if() {
    const auto look = thrust::make_transform_iterator(thrust::counting_iterator<std::int32_t>(0), Look{state, rule});
    DeviceArray<Candidate> found(lists.values.size());
    std::uint64_t* total = lists.offsets.data();
    std::size_t bytes = 0;
    const auto call = [&](void* scratch) {
      return cub::DeviceSelect::If(scratch, bytes, look, found.data(), total, static_cast<int>(kFlat), IsMarked{});
    };
    must(call(nullptr), "CUB");
    const DeviceArray<unsigned char> scratch(bytes);
    const Times times = time_of([&] { must(call(scratch.data()), "CUB"); });
    split_kernel<<<1024, 256>>>(found.data(), total, lists.narrow.data(), lists.values.data());
    add("DeviceSelect::If over a transform, records of 8 bytes", times);
  }

  void select_flagged() {
    const DeviceArray<std::uint8_t> flags(kFlat);
    std::uint64_t* total = lists.offsets.data();
    std::size_t bytes = 0;
    const auto call = [&](void* scratch) {
      return cub::DeviceSelect::Flagged(scratch, bytes, thrust::counting_iterator<std::int32_t>(0), flags.data(),
                                        lists.narrow.data(), total, static_cast<int>(kFlat));
    };
    must(call(nullptr), "CUB");
    const DeviceArray<unsigned char> scratch(bytes);
    const Times times = time_of([&] {
      flag_kernel<<<static_cast<unsigned>(kFlat / 256), 256>>>(state, rule, flags.data(), kFlat);
      must(call(scratch.data()), "CUB");
      gather_kernel<<<1056, 256>>>(state.weights, lists.narrow.data(), total, lists.values.data());
    });
    add("flags, DeviceSelect::Flagged, gather", times);
  }
};

}  // namespace

void measure_cub(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares,
                 const Ceilings& ceilings) {
  for (const Share& share : shares) {
    const ChangeRule rule = proven_rule(step_with(share.learning_rate));
    const State state{workload.weights.data(), workload.exp_avg.data(), workload.exp_avg_sq.data()};
    CubBench bench{
        report, workload, lists, ceilings,
        share,  rule,     state, tests::rule_hash(state.weights, state.exp_avg, state.exp_avg_sq, kFlat, rule)};
    bench.select_if();
    bench.select_flagged();
  }
}

}  // namespace areal::bench
