// A tensor of more than 2^31 elements, whose indices need 64 bits; needs 30 GB of device memory.
#include "engine/delta/cuda/detect.h"
#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"
#include "tests/cuda/reference.cuh"
#include "tests/cuda/steps.h"

namespace {

using namespace areal::delta;        // NOLINT(google-build-using-namespace): the subjects of this file
using namespace areal::delta::cuda;  // NOLINT(google-build-using-namespace)
using areal::tests::DeviceArray;
using areal::tests::must;

__global__ void realistic_kernel(float* weights, float* exp_avg, float* exp_avg_sq, std::uint64_t elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    areal::tests::Words words(99, i);
    const areal::tests::State state = areal::tests::realistic_state(words);
    weights[i] = state.weight;
    exp_avg[i] = state.exp_avg;
    exp_avg_sq[i] = state.exp_avg_sq;
  }
}

}  // namespace

void test_large() {
  constexpr std::uint64_t kElements = (1ULL << 31) + 4099;
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total), "memory");
  if (free < (32ULL << 30)) {
    std::printf("skipped: more than 2^31 elements: too little device memory\n");
    return;
  }
  const DeviceArray<float> weights(kElements + 1);
  const DeviceArray<float> exp_avg(kElements);
  const DeviceArray<float> exp_avg_sq(kElements);
  realistic_kernel<<<2048, 256>>>(weights.data() + 1, exp_avg.data(), exp_avg_sq.data(), kElements);
  areal::tests::wait_for_device();
  const ChangeRule rule = proven_rule(areal::tests::step_of(1e-6, 0.01, 0.95, 100));
  const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
  const std::vector<OptimizerTensor> tensors{{weights.data() + 1, exp_avg.data(), exp_avg_sq.data(), kElements, 0},
                                             {weights.data(), exp_avg.data(), exp_avg_sq.data(), 1000, 0}};
  const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(tensors)));
  const std::uint64_t room = kElements / 20;
  const DeviceArray<std::int64_t> indices(room);
  const DeviceArray<std::uint16_t> values(room);
  const DeviceArray<std::uint64_t> offsets(3);
  ChangeOutput output{nullptr, indices.data(), values.data(), room, offsets.data()};
  must(detect_changes(table, rules.data(), 1, output, nullptr));
  areal::tests::wait_for_device();
  const std::vector<std::uint64_t> found = offsets.host();
  AREAL_EXPECT(found[2] <= room);
  const auto expected = areal::tests::rule_hash(weights.data() + 1, exp_avg.data(), exp_avg_sq.data(), kElements, rule);
  AREAL_EXPECT(expected.count > kElements / 1000);
  AREAL_EXPECT(areal::tests::list_hash(indices.data(), values.data(), found[0], found[1]) == expected);
  const DeviceArray<std::int32_t> narrow(1);
  output.indices64 = nullptr;
  output.indices32 = narrow.data();
  AREAL_EXPECT(!detect_changes(table, rules.data(), 1, output, nullptr));
}
