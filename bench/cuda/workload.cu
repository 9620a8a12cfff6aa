#include <cmath>

#include "bench/cuda/workload.h"
#include "tests/cuda/strata.h"

namespace areal::bench {
namespace {

__global__ void fill_kernel(float* weights, float* exp_avg, float* exp_avg_sq, std::uint64_t elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    tests::Words words(2026, i);
    const tests::State state = tests::realistic_state(words);
    weights[i] = state.weight;
    exp_avg[i] = state.exp_avg;
    exp_avg_sq[i] = state.exp_avg_sq;
  }
}

}  // namespace

Workload::Workload(std::uint64_t elements) : weights(elements), exp_avg(elements), exp_avg_sq(elements) {
  fill_kernel<<<4096, 256>>>(weights.data(), exp_avg.data(), exp_avg_sq.data(), elements);
  tests::wait_for_device();
}

std::vector<delta::cuda::OptimizerTensor> Workload::tensors(std::uint64_t elements, std::uint64_t count) const {
  std::vector<delta::cuda::OptimizerTensor> made;
  for (std::uint64_t t = 0; t < count; ++t) {
    const std::uint64_t at = t * elements;
    made.push_back({weights.data() + at, exp_avg.data() + at, exp_avg_sq.data() + at, elements, 0});
  }
  return made;
}

Lists::Lists(std::uint64_t room, std::uint64_t tensors)
    : narrow(room), wide(room), values(room), offsets(tensors + 1) {}

delta::cuda::ChangeOutput Lists::output(bool is_wide) const {
  return {is_wide ? nullptr : narrow.data(), is_wide ? wide.data() : nullptr, values.data(), values.size(),
          offsets.data()};
}

std::vector<Share> find_shares(const Workload& workload, const Lists& lists, std::span<const double> wanted) {
  constexpr std::uint64_t kSample = 1ULL << 26;
  const auto tensors = workload.tensors(kSample);
  const auto table = must(delta::cuda::DetectTable::make(std::span<const delta::cuda::OptimizerTensor>(tensors)));
  DeviceArray<delta::cuda::ChangeRule> rules(1);
  std::vector<Share> shares;
  for (const double share : wanted) {
    double low = 1e-12;
    double high = 1e-2;
    for (int i = 0; i < 30; ++i) {
      const double middle = std::sqrt(low * high);
      const delta::cuda::ChangeRule rule = delta::cuda::proven_rule(step_with(middle));
      rules.put(std::span(&rule, 1));
      must(delta::cuda::detect_changes(table, rules.data(), 1, lists.output(false), nullptr));
      (static_cast<double>(lists.total(1)) < share * static_cast<double>(kSample) ? low : high) = middle;
    }
    shares.push_back({share, high});
  }
  return shares;
}

}  // namespace areal::bench
