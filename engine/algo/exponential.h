// exp() for float: a polynomial without branches or tables, so that a loop over it becomes vector instructions.
//
// At most 1 fp32 neighbour from the true value (tests/algo/exponential_test.cpp looks at every 37th float); subnormal
// results, overflow to infinity, 0 and NaN as std::exp gives them. The same operations run on one float and on a vector
// of them, without fused multiplication: equal bits for every instruction set. On double it is std::exp, for tests of
// formulas in float64. Range reduction and coefficients: Cephes' expf (S. Moshier).
#pragma once
#include <cmath>
#include <cstdint>

namespace areal::algo {

// What a formula needs to know of its kind of number: float, double or a vector of floats (loss_kernel_body.h).
template <class Number>
struct NumberTraits;

template <>
struct NumberTraits<float> {
  using Scalar = float;
  using Words = std::uint32_t;
};

template <>
struct NumberTraits<double> {
  using Scalar = double;
};

template <class Number>
using ScalarOf = typename NumberTraits<Number>::Scalar;

template <class Number>
[[gnu::always_inline]] inline Number all_of(ScalarOf<Number> value) {
  return Number{} + value;
}

template <class Number>
[[gnu::always_inline]] inline Number exp_of(Number x) {
  using Words = typename NumberTraits<Number>::Words;
  // Beyond these, results are infinity and 0; a NaN is on neither side and stays.
  const Number most = all_of<Number>(89.0F);
  const Number least = all_of<Number>(-104.0F);
  x = most < x ? most : x;
  x = least > x ? least : x;
  // 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits.
  const Number rounder = all_of<Number>(0x1.8p23F);
  const Number shifted = x * all_of<Number>(1.44269504088896341F) + rounder;
  const Number whole = shifted - rounder;
  const Number rest = (x - whole * all_of<Number>(0.693359375F)) - whole * all_of<Number>(-2.12194440e-4F);
  // In pairs, so that few operations wait for one another.
  const Number square = rest * rest;
  const Number upper = all_of<Number>(1.9875691500e-4F) * rest + all_of<Number>(1.3981999507e-3F);
  const Number middle = all_of<Number>(8.3334519073e-3F) * rest + all_of<Number>(4.1665795894e-2F);
  const Number lower = all_of<Number>(1.6666665459e-1F) * rest + all_of<Number>(5.0000001201e-1F);
  const Number series = (upper * square + middle) * square + lower;
  const Number power = (series * square + rest) + all_of<Number>(1.0F);
  // 2^exponent in two factors, each in the range of normal numbers.
  const Words exponent = __builtin_bit_cast(Words, shifted) - __builtin_bit_cast(Words, rounder);
  const Words half = ((exponent + 512U) >> 1) - 256U;
  const Number first = __builtin_bit_cast(Number, (half + 127U) << 23);
  const Number second = __builtin_bit_cast(Number, (exponent - half + 127U) << 23);
  return (power * first) * second;
}

template <>
[[gnu::always_inline]] inline double exp_of(double x) {
  return std::exp(x);
}

}  // namespace areal::algo
