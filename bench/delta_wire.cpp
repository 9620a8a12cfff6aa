#include "bench/delta_wire.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <unordered_map>

#include "bench/samples.h"
#include "engine/delta/bf16.h"
#include "engine/delta/cpu/wire_threads.h"
#include "engine/delta/wire/bf16_step.h"
#include "engine/delta/wire/decoder.h"
#include "engine/delta/wire/encoder.h"

namespace areal::bench {
namespace {

using delta::ChangeRule;
using namespace delta::wire;  // NOLINT(google-build-using-namespace): the subject of this file

constexpr float kNoMargin = -1.0F;

// A step's changes, and the bf16 weights before it.
struct Changes {
  delta::FoundChanges<std::int32_t> found;
  std::vector<std::uint16_t> base;
};

Changes changes_of(const delta::InversionScalars& inversion, const OptimizerArrays& arrays) {
  Changes changes;
  delta::ChangeFinder finder;
  finder.find(ChangeRule::margin(inversion, kNoMargin), spans_of(arrays, arrays.weights.size()), changes.found);
  for (const float weight : arrays.weights) changes.base.push_back(delta::to_bf16(weight));
  for (const std::int32_t index : changes.found.indices) {
    const auto i = static_cast<std::size_t>(index);
    changes.base[i] =
        delta::to_bf16(delta::invert_adamw(inversion, arrays.weights[i], arrays.exp_avg[i], arrays.exp_avg_sq[i]));
  }
  return changes;
}

using Numbers = std::vector<std::uint64_t>;

// Bits of a number if each is coded by its frequency alone.
double entropy_of(const Numbers& numbers) {
  std::unordered_map<std::uint64_t, std::uint64_t> counts;
  for (const std::uint64_t number : numbers) ++counts[number];
  double bits = 0;
  for (const auto& [number, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(numbers.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

// Bits of a number in blocks with the best k of one rule, or of all rules.
double bits_by(const Numbers& numbers, std::span<const Rule> rules) {
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kBlockChanges) {
    const auto block = std::span(numbers).subspan(begin, std::min<std::size_t>(kBlockChanges, numbers.size() - begin));
    const std::uint32_t longest = bit_length(*std::ranges::max_element(block));
    std::uint64_t least = ~0ULL;
    for (const Rule rule : rules) {
      for (std::uint32_t k = rule == Rule::kPacked ? longest : 0; k <= longest; ++k) {
        const StreamCode code{rule, k};
        std::uint64_t zeros = 0;
        for (const std::uint64_t number : block) zeros += zeros_of(code, number);
        least = std::min(least, unary_bits(code, block.size(), zeros) + low_bits(code, block.size(), zeros));
      }
    }
    sum += least;
  }
  return static_cast<double>(sum) / static_cast<double>(numbers.size());
}

double bits_by(const Numbers& numbers, Rule rule) { return bits_by(numbers, std::span(&rule, 1)); }

double varint_bits(const Numbers& numbers) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t number : numbers) bytes += std::max<std::uint64_t>(1, (bit_length(number) + 6) / 7);
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(numbers.size());
}

void print_codes(const char* name, const Numbers& numbers) {
  constexpr Rule kAll[] = {Rule::kPacked, Rule::kRice, Rule::kExpGolomb};
  std::printf(
      "    bits for a %-5s entropy %5.2f, best of three %5.2f, Rice %5.2f, exp-Golomb %5.2f, packed %5.2f, LEB128 "
      "%5.2f\n",
      name, entropy_of(numbers), bits_by(numbers, kAll), bits_by(numbers, Rule::kRice),
      bits_by(numbers, Rule::kExpGolomb), bits_by(numbers, Rule::kPacked), varint_bits(numbers));
}

void print_alternatives(const Changes& changes) {
  Numbers gaps;
  Numbers steps;
  std::size_t ones = 0;
  for (std::size_t i = 0; i < changes.found.indices.size(); ++i) {
    const std::int32_t index = changes.found.indices[i];
    gaps.push_back(static_cast<std::uint64_t>(i == 0 ? index : index - changes.found.indices[i - 1] - 1));
    steps.push_back(step_number(changes.base[static_cast<std::size_t>(index)], changes.found.values[i]));
    ones += steps.back() < 2 ? 1 : 0;
  }
  print_codes("gap", gaps);
  print_codes("step", steps);
  std::printf("    steps of one unit in the last place: %.1f %%\n",
              100.0 * static_cast<double>(ones) / static_cast<double>(steps.size()));
}

struct Speeds {
  std::vector<double> encoding;
  std::vector<double> decoding;
  std::size_t bytes = 0;
  bool is_equal = true;
};

Speeds measure(const Changes& changes, ValueKind kind, Path path, const WireWishes& wishes) {
  const bool has_base = kind.form == Form::kSteps;
  const std::span<const std::uint16_t> base = has_base ? changes.base : std::span<const std::uint16_t>();
  const TensorChanges sent{
      .elements = changes.base.size(), .narrow = changes.found.indices, .half = changes.found.values, .base = base};
  const TensorBase held{changes.base.size(), base};
  Speeds speeds;
  std::vector<std::uint8_t> bytes;
  DecodedChanges<std::int32_t, std::uint16_t> decoded;
  for (int i = 0; i <= wishes.samples; ++i) {
    const double encoding = core_seconds_of([&] {
      auto coded = path == Path::kFast ? delta::encode_by_threads(std::span(&sent, 1), kind, wishes.threads)
                                       : encode(std::span(&sent, 1), kind, path);
      if (coded) bytes = std::move(coded).value();
    });
    const double decoding = core_seconds_of([&] {
      auto result = path == Path::kFast ? delta::decode_by_threads<std::int32_t, std::uint16_t>(
                                              bytes, std::span(&held, 1), wishes.threads)
                                        : decode<std::int32_t, std::uint16_t>(bytes, std::span(&held, 1), path);
      if (result) decoded = std::move(result).value();
    });
    speeds.is_equal =
        speeds.is_equal && decoded.indices == changes.found.indices && decoded.values == changes.found.values;
    decoded.indices.clear();
    if (i == 0) continue;
    speeds.encoding.push_back(encoding);
    speeds.decoding.push_back(decoding);
  }
  speeds.bytes = bytes.size();
  return speeds;
}

bool print_form(const char* name, const Changes& changes, ValueKind kind, Path path, const WireWishes& wishes) {
  const Speeds speeds = measure(changes, kind, path, wishes);
  const auto count = static_cast<double>(changes.found.indices.size());
  const double weights = 2e-9 * static_cast<double>(changes.base.size());  // GB of bf16.
  const Spread encoding = spread_of(speeds.encoding);
  const Spread decoding = spread_of(speeds.decoding);
  std::printf(
      "  %-22s %6.3f bytes a change   coding %6.1f (%5.1f to %5.1f)   decoding %6.1f (%5.1f to %5.1f) Mchange/s   "
      "weights %6.1f and %6.1f GB/s%s\n",
      name, static_cast<double>(speeds.bytes) / count, 1e-6 * count / encoding.median, 1e-6 * count / encoding.most,
      1e-6 * count / encoding.least, 1e-6 * count / decoding.median, 1e-6 * count / decoding.most,
      1e-6 * count / decoding.least, weights / encoding.median, weights / decoding.median,
      speeds.is_equal ? "" : "   FAILED: decoded otherwise");
  return speeds.is_equal;
}

}  // namespace

bool compare_wire_at(double rate, const delta::InversionScalars& inversion, const OptimizerArrays& arrays,
                     const WireWishes& wishes) {
  const Changes changes = changes_of(inversion, arrays);
  if (changes.found.indices.empty()) return false;
  std::printf("changed %.3f %% of %zu weights (rate %.2e)\n",
              100.0 * static_cast<double>(changes.found.indices.size()) / static_cast<double>(changes.base.size()),
              changes.base.size(), rate);
  print_alternatives(changes);
  bool is_equal = print_form("steps", changes, {Form::kSteps, 2}, Path::kFast, wishes);
  is_equal = print_form("plain", changes, {Form::kPlain, 2}, Path::kFast, wishes) && is_equal;
  return print_form("steps, bit by bit", changes, {Form::kSteps, 2}, Path::kReference, wishes) && is_equal;
}

}  // namespace areal::bench
