// Tensors of more than 2^31 elements, whose indices need 64 bits; needs 30 GB of device memory.
#include "engine/delta/cuda/apply.h"
#include "engine/delta/cuda/detect.h"
#include "engine/delta/cuda/tensor_scan.h"
#include "engine/delta/element_digest.h"
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

constexpr std::uint64_t kElements = (1ULL << 31) + 4099;

__global__ void bits_kernel(std::uint16_t* bits, std::uint64_t elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    bits[i] = static_cast<std::uint16_t>(areal::mix_words(55, i));
  }
}

// The whole as one piece and in three gives equal digests; the elements that are not finite are as many.
void scans_of_all(const std::uint16_t* bits) {
  constexpr std::uint64_t kCuts[] = {0, (1ULL << 31) - 7, (1ULL << 31) + 9, kElements};
  std::vector<TensorPiece> pieces{{bits, kElements, 0, 0, 3, 0}};
  for (int i = 0; i < 3; ++i) pieces.push_back({bits + kCuts[i], kCuts[i + 1] - kCuts[i], 0, kCuts[i], 3, 0});
  const std::uint64_t chunks = number_chunks(std::span(pieces));
  const DeviceArray<TensorPiece> there(std::span<const TensorPiece>{pieces});
  const PieceList list{there.data(), 4, chunks, 2};
  const DeviceArray<unsigned char> scratch(digest_scratch_bytes(4));
  const DeviceArray<areal::Digest128> digests(4);
  const DeviceArray<std::uint64_t> counts(4);
  must(digest_pieces(list, scratch.data(), digests.data(), nullptr));
  must(count_not_finite(list, counts.data(), nullptr));
  areal::tests::wait_for_device();
  const std::vector<areal::Digest128> found = digests.host();
  ElementSum sum;
  for (int i = 1; i < 4; ++i) sum.add(found[static_cast<std::size_t>(i)]);
  AREAL_EXPECT(sum.digest() == found[0] && found[0] != areal::Digest128{});
  const std::vector<std::uint64_t> bad = counts.host();
  AREAL_EXPECT(bad[0] == bad[1] + bad[2] + bad[3] && bad[0] > kElements / 300);
}

// Patches at both ends of the range of 32 bits, the comparison that finds them again, and their values.
void patches_beyond_32_bits() {
  const DeviceArray<std::uint16_t> now(kElements);
  const DeviceArray<std::uint16_t> sent(kElements);
  bits_kernel<<<2048, 256>>>(sent.data(), kElements);
  std::vector<DenseCopy> copies{{sent.data(), now.data(), kElements, 0}};
  const std::uint64_t chunks = number_chunks(std::span(copies));
  const DeviceArray<DenseCopy> there_copies(std::span<const DenseCopy>{copies});
  must(copy_dense(there_copies.data(), 1, chunks, nullptr));
  scans_of_all(now.data());
  const std::vector<std::int64_t> places{0, 77, (1LL << 31) - 1, 1LL << 31, (1LL << 31) + 4098};
  std::vector<std::uint16_t> values;
  for (const std::int64_t place : places) {
    values.push_back(static_cast<std::uint16_t>(~sent.host(static_cast<std::size_t>(place), 1)[0]));
  }
  const DeviceArray<std::int64_t> indices(std::span<const std::int64_t>{places});
  const DeviceArray<std::uint16_t> there_values(std::span<const std::uint16_t>{values});
  const std::vector<std::uint64_t> ends{0, places.size()};
  const DeviceArray<std::uint64_t> offsets(std::span<const std::uint64_t>{ends});
  const ApplyTarget target{now.data(), kElements};
  const DeviceArray<ApplyTarget> targets(std::span(&target, 1));
  const DeviceArray<std::uint64_t> refused(1);
  refused.fill(0);
  const PatchList patch{nullptr, indices.data(), there_values.data(), offsets.data(), 1, places.size()};
  must(apply_sparse(targets.data(), patch, refused.data(), nullptr));
  const std::vector<SnapshotTensor> tensors{{now.data(), sent.data(), kElements}};
  const DetectTable table = must(DetectTable::make(std::span<const SnapshotTensor>(tensors)));
  const DeviceArray<std::int64_t> found(places.size());
  const DeviceArray<std::uint16_t> found_values(places.size());
  const DeviceArray<std::uint64_t> found_offsets(2);
  must(compare_snapshot(table, {nullptr, found.data(), found_values.data(), places.size(), found_offsets.data()},
                        nullptr));
  const GatherSource source{nullptr, now.data(), kElements};
  const DeviceArray<GatherSource> sources(std::span(&source, 1));
  const DeviceArray<std::uint16_t> gathered(places.size());
  must(gather_values(sources.data(), patch, gathered.data(), refused.data(), nullptr));
  areal::tests::wait_for_device();
  AREAL_EXPECT(found_offsets.host() == ends && found.host() == places);
  AREAL_EXPECT(found_values.host() == values && gathered.host() == values);
  AREAL_EXPECT(refused.host()[0] == 0);
}

void inversion_beyond_32_bits() {
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

bool has_room() {
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total), "memory");
  if (free >= (32ULL << 30)) return true;
  std::printf("skipped: more than 2^31 elements: too little device memory\n");
  return false;
}

}  // namespace

void test_detect_large() {
  if (has_room()) inversion_beyond_32_bits();
}

void test_apply_large() {
  if (has_room()) patches_beyond_32_bits();
}
