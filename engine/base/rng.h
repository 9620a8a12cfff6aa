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

// One well-mixed word from two: splitmix64's finaliser. For tables and pseudo-data, not for draws.
std::uint64_t mix_words(std::uint64_t a, std::uint64_t b);

}  // namespace areal
