// Deltas to code: tensors of given sizes, changes evenly spread, in runs or rare, values of any kind. Also for the
// tests of device code, which have no test library.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/rng.h"
#include "engine/delta/wire/encoder.h"

namespace areal::tests {

// The changed tensors as a sender has them, and what the receiver holds.
struct SampleTensor {
  std::uint64_t elements = 0;
  std::vector<std::int64_t> indices{};
  std::vector<std::uint16_t> half{};
  std::vector<std::uint32_t> word{};
  std::vector<std::uint16_t> base{};  // All elements; empty without a base.
};

enum class Spread : std::uint8_t { kEven, kRuns, kFew, kAll };
enum class Steps : std::uint8_t { kOne, kTail, kAny };

struct SampleKind {
  Spread spread = Spread::kEven;
  Steps steps = Steps::kTail;
  std::uint64_t one_in = 100;
};

// Patterns whose order or rounding is special: zeros, denormals, one, the largest, infinities, NaNs.
inline constexpr std::uint16_t kSpecialBf16[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x807F,
                                                 0x0080, 0x8080, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F,
                                                 0x7F80, 0xFF80, 0x7F81, 0xFF81, 0x7FC0, 0xFFFF};

inline std::uint16_t sample_bf16(Rng& rng) {
  const std::uint16_t special = kSpecialBf16[rng.draw_below(std::size(kSpecialBf16))];
  if (rng.draw_chance(1, 50)) return special;
  const auto exponent = static_cast<std::uint32_t>(110 + rng.draw_below(14));
  const auto rest = static_cast<std::uint32_t>(rng.draw_below(256));
  return static_cast<std::uint16_t>(((rest & 0x80U) << 8) | (exponent << 7) | (rest & 0x7FU));
}

// Another value, mostly near.
inline std::uint16_t sample_step(Rng& rng, std::uint16_t base, Steps steps) {
  if (steps == Steps::kAny) return static_cast<std::uint16_t>(rng.draw_u64());
  std::uint64_t size = 1;
  while (steps == Steps::kTail && size < 5000 && rng.draw_chance(1, 4)) {
    size = 2 * size;
    size += rng.draw_below(2);
  }
  const bool is_up = rng.draw_chance(1, 2);
  return static_cast<std::uint16_t>(is_up ? base + size : base - size);
}

inline bool is_changed(Rng& rng, const SampleKind& kind, std::uint64_t index, std::uint64_t elements) {
  switch (kind.spread) {
    case Spread::kEven:
      return rng.draw_chance(1, kind.one_in);
    case Spread::kRuns:
      return mix_words(7, index / 300) % kind.one_in == 0 && !rng.draw_chance(1, 20);
    case Spread::kFew:
      return index == 0 || index + 1 == elements || index == elements / 3;
    case Spread::kAll:
      return true;
  }
  return false;
}

inline SampleTensor make_sample(std::uint64_t elements, const SampleKind& kind, std::uint64_t seed) {
  Rng rng(seed);
  SampleTensor made{.elements = elements};
  for (std::uint64_t i = 0; i < elements; ++i) {
    made.base.push_back(sample_bf16(rng));
    if (!is_changed(rng, kind, i, elements)) continue;
    made.indices.push_back(static_cast<std::int64_t>(i));
    made.half.push_back(sample_step(rng, made.base.back(), kind.steps));
    made.word.push_back(static_cast<std::uint32_t>(rng.draw_u64()));
  }
  return made;
}

inline std::vector<std::int32_t> narrow_of(const SampleTensor& tensor) {
  return {tensor.indices.begin(), tensor.indices.end()};
}

inline delta::wire::TensorChanges changes_of(const SampleTensor& tensor, delta::wire::ValueKind kind) {
  delta::wire::TensorChanges changes{.elements = tensor.elements, .wide = tensor.indices};
  if (kind.value_bytes == 2) changes.half = tensor.half;
  if (kind.value_bytes == 4) changes.word = tensor.word;
  if (kind.form == delta::wire::Form::kSteps) changes.base = tensor.base;
  return changes;
}

inline std::vector<delta::wire::TensorChanges> changes_of(const std::vector<SampleTensor>& tensors,
                                                          delta::wire::ValueKind kind) {
  std::vector<delta::wire::TensorChanges> changes;
  for (const SampleTensor& tensor : tensors) changes.push_back(changes_of(tensor, kind));
  return changes;
}

}  // namespace areal::tests
