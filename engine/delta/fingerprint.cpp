#include "engine/delta/fingerprint.h"

#include <algorithm>

namespace areal::delta {
namespace {

std::uint64_t sum_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum = 0;
  for (const std::uint8_t byte : bytes) sum += byte;
  return sum;
}

std::uint64_t sampled_sum(std::span<const std::uint8_t> bytes) {
  const std::uint64_t samples = std::min<std::uint64_t>(kMaxSamples, bytes.size());
  const std::uint64_t steps = std::max<std::uint64_t>(samples, 2) - 1;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < samples; ++i) sum += (i + 1) * bytes[i * (bytes.size() - 1) / steps];
  return sum;
}

}  // namespace

Fingerprint fingerprint_of(std::span<const std::uint8_t> bytes, DType dtype) {
  Fingerprint print{.dtype = dtype, .bytes = bytes.size()};
  if (bytes.empty()) return print;
  const std::uint64_t bins = std::min<std::uint64_t>(kMaxBins, bytes.size());
  const std::uint64_t width = bytes.size() / bins;
  const auto add = [&print](std::span<const std::uint8_t> bin, std::uint64_t weight) {
    const std::uint64_t sum = sum_of(bin);
    print.total += sum;
    print.weighted += sum * weight;
  };
  for (std::uint64_t bin = 0; bin < bins; ++bin) add(bytes.subspan(bin * width, width), bin + 1);
  add(bytes.subspan(bins * width), bins + 1);
  print.sampled = sampled_sum(bytes);
  print.first = bytes.front();
  print.last = bytes.back();
  return print;
}

}  // namespace areal::delta
