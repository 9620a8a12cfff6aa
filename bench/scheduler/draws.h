// The random draws that every benchmark and every peer program makes: equal work on both sides.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace areal::bench {

// xorshift128+ (Vigna 2014).
class Xorshift {
 public:
  explicit Xorshift(std::uint64_t seed = 1) : a_(mixed(seed)), b_(mixed(seed + 0x9E3779B97F4A7C15)) {}

  std::uint64_t draw() {
    std::uint64_t x = a_;
    const std::uint64_t y = b_;
    a_ = y;
    x ^= x << 23;
    b_ = x ^ y ^ (x >> 17) ^ (y >> 26);
    return b_ + y;
  }

 private:
  // splitmix64: near seeds give far streams.
  static std::uint64_t mixed(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
    return (word ^ (word >> 31)) | 1;
  }

  std::uint64_t a_;
  std::uint64_t b_;
};

// Whole numbers of exponential distribution, from a table of 2^Bits quantiles.
template <int Bits = 12>
class ExpTable {
 public:
  explicit ExpTable(double mean) : values_(std::make_unique<Values>()) {
    for (std::size_t i = 0; i < values_->size(); ++i) {
      const double quantile = (static_cast<double>(i) + 0.5) / static_cast<double>(values_->size());
      (*values_)[i] = static_cast<std::int64_t>(-std::log(1.0 - quantile) * mean);
    }
  }
  std::int64_t draw(Xorshift& random) const { return (*values_)[random.draw() >> (64 - Bits)]; }

 private:
  using Values = std::array<std::int64_t, std::size_t{1} << Bits>;
  std::unique_ptr<Values> values_;
};

}  // namespace areal::bench
