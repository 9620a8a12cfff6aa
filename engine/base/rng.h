// Own generator with named streams and whole-number draws, equal on every compiler.
//
// xoshiro256** seeded by splitmix64 (Blackman and Vigna, public domain). Every draw is called draw_*, so that a linter
// sees two draws in one statement, whose order the language leaves open.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace areal {

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t draw_u64();
  // Uniform in [0, bound). REQUIRES: bound > 0.
  std::uint64_t draw_below(std::uint64_t bound);
  // True with probability numerator / denominator. REQUIRES: denominator > 0.
  bool draw_chance(std::uint64_t numerator, std::uint64_t denominator);

  // A stream of its own, named after what it decides; it depends on this stream's seed alone, not on its draws.
  [[nodiscard]] Rng fork(std::string_view name) const;

  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_ = 0;
  std::array<std::uint64_t, 4> state_{};
};

// splitmix64's finaliser and its increment.
inline constexpr std::uint64_t kGoldenWord = 0x9E3779B97F4A7C15ULL;
constexpr std::uint64_t finalise_word(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// One well-mixed word from two. For tables and pseudo-data, not for draws. In line, so that devices have it too.
constexpr std::uint64_t mix_words(std::uint64_t a, std::uint64_t b) {
  return finalise_word((a + kGoldenWord) ^ finalise_word(b + kGoldenWord));
}

}  // namespace areal
