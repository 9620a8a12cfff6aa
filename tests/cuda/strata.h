// Optimizer states of every kind that a change rule must decide rightly: realistic ones, and ones made to fall beside
// rounding boundaries, powers of two, zeros, denormals, infinities and NaN. From a seed and an index alone, on hosts
// and devices alike.
#pragma once
#include <cstdint>

#include "engine/base/rng.h"
#include "engine/delta/bf16.h"
#include "engine/delta/host_device.h"
#include "engine/delta/proven_bound.h"

namespace areal::tests {

struct State {
  float weight = 0;
  float exp_avg = 0;
  float exp_avg_sq = 0;
};

enum class Stratum : std::uint32_t { kRealistic, kBeside, kPowerOfTwo, kTiny, kAnyBits, kStill, kCount };

// A stream of words for one index.
class Words {
 public:
  AREAL_HOST_DEVICE Words(std::uint64_t seed, std::uint64_t index) : state_(mix_words(seed, index)) {}
  AREAL_HOST_DEVICE std::uint64_t next() { return finalise_word(state_ += kGoldenWord); }
  // In [0, 1).
  AREAL_HOST_DEVICE float unit() { return static_cast<float>(next() >> 40) * 0x1p-24F; }
  AREAL_HOST_DEVICE float between(float low, float high) {
    return delta::proven::sum(low, delta::proven::product(delta::proven::sum(high, -low), unit()));
  }
  // Near a normal distribution: twelve halves of a byte would do, four words of 16 bits do better.
  AREAL_HOST_DEVICE float bell() {
    const std::uint64_t a = next();
    const std::uint64_t b = next();
    std::int64_t sum = 0;
    for (int i = 0; i < 4; ++i) {
      sum += static_cast<std::int64_t>((a >> (16 * i)) & 0xFFFF) + static_cast<std::int64_t>((b >> (16 * i)) & 0xFFFF);
    }
    // Eight uniform numbers have variance 8/12.
    return delta::proven::product(static_cast<float>(sum - 4 * 0xFFFF), 1.2247449F / 65536.0F);
  }

 private:
  std::uint64_t state_;
};

// Moments as training has them: v near m^2.
AREAL_HOST_DEVICE inline State realistic_state(Words& words) {
  State state;
  state.weight = delta::proven::product(words.bell(), 0.02F);
  state.exp_avg = words.between(-5e-5F, 5e-5F);
  state.exp_avg_sq =
      delta::proven::product(delta::proven::product(state.exp_avg, state.exp_avg), words.between(0.5F, 1.5F));
  return state;
}

// Moments such that the weight before lies `steps` fp32 neighbours from a boundary of the weight's bf16 value.
AREAL_HOST_DEVICE inline void put_beside(State& state, Words& words, const delta::ProvenScalars& scalars) {
  const std::uint32_t current = std::uint32_t{delta::to_bf16(state.weight)} << 16;
  const std::uint64_t word = words.next();
  const auto steps = static_cast<std::uint32_t>(word % 65) - 32U;
  const std::uint32_t boundary = (word & 0x100000000ULL) != 0 ? current + 0x8000U : current - 0x8000U;
  const float target = delta::float_of_bits(boundary + steps);
  const float denominator = delta::proven::sum(
      delta::proven::root(delta::proven::product(state.exp_avg_sq, scalars.inverse_bc2)), scalars.epsilon);
  const float grown = delta::proven::quotient(target, delta::proven::sum(1.0F, scalars.growth));
  const float update = delta::proven::sum(grown, -state.weight);
  state.exp_avg = delta::proven::quotient(delta::proven::product(update, denominator), scalars.step_size);
}

AREAL_HOST_DEVICE inline State state_of(Stratum stratum, std::uint64_t seed, std::uint64_t index,
                                        const delta::ProvenScalars& scalars) {
  Words words(seed + static_cast<std::uint64_t>(stratum), index);
  State state = realistic_state(words);
  const std::uint64_t word = words.next();
  const std::uint32_t sign = static_cast<std::uint32_t>(word >> 63) << 31;
  switch (stratum) {
    case Stratum::kRealistic:
    case Stratum::kCount:
      break;
    case Stratum::kBeside:
      put_beside(state, words, scalars);
      break;
    case Stratum::kPowerOfTwo:
      state.weight = delta::float_of_bits(sign | (((60U + static_cast<std::uint32_t>(word % 100)) << 23) +
                                                  static_cast<std::uint32_t>(word >> 32) % 0x20000U - 0x10000U));
      put_beside(state, words, scalars);
      break;
    case Stratum::kTiny:  // Denormals and around; some are zero.
      state.weight = delta::float_of_bits(sign | static_cast<std::uint32_t>((word & 0x1FFFFFFF) >> word % 30));
      state.exp_avg = delta::float_of_bits(static_cast<std::uint32_t>(words.next() & 0xBFFFFFFF) >> word % 7);
      state.exp_avg_sq = delta::float_of_bits(static_cast<std::uint32_t>(words.next() & 0x1FFFFFFF));
      break;
    case Stratum::kAnyBits:  // Infinities and NaN among them.
      state.weight = delta::float_of_bits(static_cast<std::uint32_t>(word));
      state.exp_avg = delta::float_of_bits(static_cast<std::uint32_t>(words.next()));
      state.exp_avg_sq = delta::float_of_bits(static_cast<std::uint32_t>(words.next()));
      if (word % 5 == 0) state.weight = delta::float_of_bits(sign | 0x7F800000U);
      if (word % 7 == 0) state.exp_avg_sq = delta::float_of_bits(0x7F800000U | static_cast<std::uint32_t>(word % 3));
      break;
    case Stratum::kStill:
      state.exp_avg = delta::float_of_bits(word % 2 == 0 ? 0U : 0x80000000U);
      if (word % 3 == 0) state.exp_avg_sq = 0.0F;
      if (word % 11 == 0) state.weight = delta::float_of_bits(sign);
      break;
  }
  return state;
}

}  // namespace areal::tests
