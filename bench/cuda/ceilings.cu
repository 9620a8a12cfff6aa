// What device memory gives at most: copies and reads of several gigabytes, in several ways.
#include "bench/cuda/sections.h"

namespace areal::bench {
namespace {

constexpr std::uint64_t kBytes = 4ULL << 30;
constexpr int kUnits = 8;  // Of 16 bytes, in flight for each thread.

template <bool kWrites>
__global__ void __launch_bounds__(512) stream_kernel(const uint4* source, uint4* target, std::uint64_t units) {
  const std::uint64_t block = std::uint64_t{blockIdx.x} * blockDim.x * kUnits;
  uint4 loaded[kUnits];
#pragma unroll
  for (int k = 0; k < kUnits; ++k) {
    const std::uint64_t i = block + k * blockDim.x + threadIdx.x;
    if (i < units) loaded[k] = __ldcs(source + i);
  }
  std::uint32_t seen = 0;
#pragma unroll
  for (int k = 0; k < kUnits; ++k) {
    const std::uint64_t i = block + k * blockDim.x + threadIdx.x;
    if (i >= units) continue;
    if (kWrites) __stcs(target + i, loaded[k]);
    seen |= (loaded[k].x ^ loaded[k].y) + (loaded[k].z ^ loaded[k].w);
  }
  if (!kWrites && seen == 0x12345678U) target[threadIdx.x] = loaded[0];  // So that the loads are kept.
}

}  // namespace

Ceilings measure_ceilings(Report& report, const Workload& workload) {
  const DeviceArray<unsigned char> target(kBytes);
  const auto* source = reinterpret_cast<const uint4*>(workload.weights.data());
  auto* to = reinterpret_cast<uint4*>(target.data());
  constexpr std::uint64_t kAll = kBytes / 16;
  constexpr auto kBlocks = static_cast<unsigned>(kAll / (512 * kUnits));
  const Times engine = time_of([&] { cudaMemcpyAsync(to, source, kBytes, cudaMemcpyDeviceToDevice); });
  const Times kernel = time_of([&] { stream_kernel<true><<<kBlocks, 512>>>(source, to, kAll); });
  const Times read = time_of([&] { stream_kernel<false><<<kBlocks, 512>>>(source, to, kAll); });
  const auto rate = [](const Times& times, double bytes) { return bytes / times.median_ms / 1e6; };
  constexpr double kBoth = 2.0 * static_cast<double>(kBytes);
  report.add(Row("ceiling", "copy by cudaMemcpy").add(engine).add("GBps", rate(engine, kBoth)));
  report.add(Row("ceiling", "copy by a kernel").add(kernel).add("GBps", rate(kernel, kBoth)));
  report.add(Row("ceiling", "read by a kernel").add(read).add("GBps", rate(read, static_cast<double>(kBytes))));
  return {std::max(rate(engine, kBoth), rate(kernel, kBoth)), rate(read, static_cast<double>(kBytes))};
}

}  // namespace areal::bench
