#include "engine/base/rng.h"

#include "engine/base/check.h"

namespace areal {
namespace {

std::uint64_t rotate_left(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

}  // namespace

Rng::Rng(std::uint64_t seed) : seed_(seed) {
  std::uint64_t x = seed;
  for (std::uint64_t& word : state_) word = finalise_word(x += kGoldenWord);
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
  std::uint64_t hash = 14695981039346656037ULL ^ finalise_word(seed_ + kGoldenWord);  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211ULL;
  return Rng(finalise_word(hash));
}

}  // namespace areal
