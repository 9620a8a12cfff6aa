// Instant and Duration in whole nanoseconds; the only types of time.
#pragma once
#include <compare>
#include <cstdint>

#include "engine/base/check.h"

namespace areal {

struct Duration {
  std::int64_t ns = 0;
  constexpr auto operator<=>(const Duration&) const = default;
};

struct Instant {
  std::int64_t ns = 0;
  constexpr auto operator<=>(const Instant&) const = default;
};

constexpr Duration operator""_ns(unsigned long long v) { return {static_cast<std::int64_t>(v)}; }
constexpr Duration operator""_us(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000}; }
constexpr Duration operator""_ms(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000}; }
constexpr Duration operator""_s(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000'000}; }

// Sums are checked: a run of 292 years is a bug.
inline Instant operator+(Instant at, Duration by) {
  std::int64_t sum = 0;
  AREAL_CHECK(!__builtin_add_overflow(at.ns, by.ns, &sum));
  return {sum};
}
inline Duration operator-(Instant end, Instant start) {
  std::int64_t difference = 0;
  AREAL_CHECK(!__builtin_sub_overflow(end.ns, start.ns, &difference));
  return {difference};
}
inline Duration operator+(Duration a, Duration b) {
  std::int64_t sum = 0;
  AREAL_CHECK(!__builtin_add_overflow(a.ns, b.ns, &sum));
  return {sum};
}
inline Duration operator*(Duration a, std::int64_t times) {
  std::int64_t product = 0;
  AREAL_CHECK(!__builtin_mul_overflow(a.ns, times, &product));
  return {product};
}

}  // namespace areal
