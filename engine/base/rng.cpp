#include "engine/base/rng.h"

#include "engine/base/check.h"

namespace areal {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

std::uint64_t finalise(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint64_t rotate_left(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

}  // namespace

std::uint64_t mix_words(std::uint64_t a, std::uint64_t b) { return finalise((a + kGolden) ^ finalise(b + kGolden)); }

Rng::Rng(std::uint64_t seed) : seed_(seed) {
  std::uint64_t x = seed;
  for (std::uint64_t& word : state_) word = finalise(x += kGolden);
}

std::uint64_t Rng::draw_u64() {
  const std::uint64_t out = rotate_left(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate_left(state_[3], 45);
  return out;
}

std::uint64_t Rng::draw_below(std::uint64_t bound) {
  AREAL_CHECK(bound > 0);
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t x = draw_u64();
  while (x >= limit) x = draw_u64();
  return x % bound;
}

bool Rng::draw_chance(std::uint64_t numerator, std::uint64_t denominator) {
  return draw_below(denominator) < numerator;
}

Rng Rng::fork(std::string_view name) const {
  std::uint64_t hash = 14695981039346656037ULL ^ finalise(seed_ + kGolden);  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211ULL;
  return Rng(finalise(hash));
}

}  // namespace areal
