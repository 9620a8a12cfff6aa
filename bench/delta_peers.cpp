#include "bench/delta_peers.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "engine/base/rng.h"

namespace areal::bench {
namespace {

using delta::from_bf16;
using delta::to_bf16;

std::uint32_t read_range(const float* from, std::size_t count) {
  std::uint32_t joined = 0;
  for (std::size_t i = 0; i < count; ++i) joined |= delta::float_bits(from[i]);
  return joined;
}

}  // namespace

OptimizerArrays make_arrays(std::size_t count, std::uint64_t seed) {
  constexpr double kScale = 0x1p-16;
  OptimizerArrays arrays;
  arrays.weights.resize(count);
  arrays.exp_avg.resize(count);
  arrays.exp_avg_sq.resize(count);
  Rng rng(seed);
  for (std::size_t i = 0; i < count; ++i) {
    // Eight uniform values of 16 bits: their sum has a variance of 8 / 12.
    std::uint64_t low = rng.draw_u64();
    std::uint64_t high = rng.draw_u64();
    std::uint64_t sum = 0;
    for (int part = 0; part < 4; ++part, low >>= 16, high >>= 16) sum += (low & 0xFFFF) + (high & 0xFFFF);
    const double normal = (static_cast<double>(sum) * kScale - 4.0) / std::sqrt(8.0 / 12.0);
    const std::uint64_t word = rng.draw_u64();
    const double first = static_cast<double>(word & 0xFFFFFFFF) * 0x1p-32 - 0.5;
    const double second = static_cast<double>(word >> 32) * 0x1p-32 + 0.5;
    arrays.weights[i] = static_cast<float>(0.02 * normal);
    arrays.exp_avg[i] = static_cast<float>(1e-4 * first);
    arrays.exp_avg_sq[i] = static_cast<float>(1e-8 * first * first * second);
  }
  return arrays;
}

std::uint32_t read_once(const OptimizerArrays& arrays, std::uint32_t threads) {
  const std::size_t count = arrays.weights.size();
  std::vector<std::uint32_t> joined(threads, 0);
  const auto work = [&](std::uint32_t share) {
    // In turns of one block, as finding reads them.
    constexpr std::size_t kBlock = 2048;
    const auto bound = [&](std::size_t part) { return count / threads * part + std::min(part, count % threads); };
    const std::size_t end = bound(std::size_t{share} + 1);
    for (std::size_t i = bound(share); i < end; i += kBlock) {
      const std::size_t length = std::min(kBlock, end - i);
      joined[share] |= read_range(arrays.weights.data() + i, length) | read_range(arrays.exp_avg.data() + i, length) |
                       read_range(arrays.exp_avg_sq.data() + i, length);
    }
  };
  std::vector<std::thread> running;
  for (std::uint32_t share = 1; share < threads; ++share) running.emplace_back(work, share);
  work(0);
  for (std::thread& thread : running) thread.join();
  for (const std::uint32_t part : joined) joined[0] |= part;
  return joined[0];
}

MultiPass::MultiPass(std::size_t count)
    : denominator_(count), update_(count), old_(count), current_(count), mask_(count) {}

void MultiPass::find(const delta::InversionScalars& scalars, const OptimizerArrays& arrays,
                     delta::FoundChanges<std::int32_t>& found) {
  const std::size_t count = arrays.weights.size();
  for (std::size_t i = 0; i < count; ++i) {
    denominator_[i] = std::sqrt(arrays.exp_avg_sq[i] / scalars.bc2) + scalars.epsilon;
  }
  for (std::size_t i = 0; i < count; ++i) update_[i] = (scalars.step_size * arrays.exp_avg[i]) / denominator_[i];
  for (std::size_t i = 0; i < count; ++i) old_[i] = (arrays.weights[i] + update_[i]) / scalars.decay;
  for (std::size_t i = 0; i < count; ++i) current_[i] = to_bf16(arrays.weights[i]);
  for (std::size_t i = 0; i < count; ++i) mask_[i] = to_bf16(old_[i]) != current_[i] ? 1 : 0;
  found.indices.clear();
  found.values.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (mask_[i] == 0) continue;
    found.indices.push_back(static_cast<std::int32_t>(i));
    found.values.push_back(current_[i]);
  }
}

std::unique_ptr<TorchPeer> TorchPeer::start(const std::string& script, const OptimizerArrays& arrays,
                                            std::uint32_t threads, std::string& why) {
  const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
  auto process = TorchProcess::start(
      script, {{"p", bytes(arrays.weights)}, {"m", bytes(arrays.exp_avg)}, {"v", bytes(arrays.exp_avg_sq)}}, threads,
      why);
  return process ? std::unique_ptr<TorchPeer>(new TorchPeer(std::move(process))) : nullptr;
}

double TorchPeer::find(const delta::InversionScalars& scalars, bool with_guard, float margin_rel) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), "%s %.17g %.17g %.17g %.17g %.17g", with_guard ? "guard" : "plain",
                double{scalars.step_size}, double{scalars.bc2}, double{scalars.epsilon}, double{scalars.decay},
                double{margin_rel});
  const std::string answer = process_->ask(line.data());
  if (answer.empty()) {
    std::fprintf(stderr, "delta_bench: delta_torch.py ended\n");
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): no other thread runs.
  }
  return std::strtod(answer.c_str(), nullptr);
}

std::vector<std::int32_t> TorchPeer::indices() {
  std::vector<std::int32_t> found(std::strtoull(process_->ask("indices").c_str(), nullptr, 10));
  if (!process_->read("indices", std::as_writable_bytes(std::span(found)))) found.clear();
  return found;
}

}  // namespace areal::bench
