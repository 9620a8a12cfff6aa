// The kernels over vectors, for any instruction set that `V` wraps. Included by one file of each set.
//
// Element for element the arithmetic of proven_bound.h, inversion.h and change_mask.h in the same order, so that all
// sets give equal bits. Everything is local to the including file; see kernel.h for why.
#pragma once
#include <cstdint>

#include "engine/delta/cpu/kernel.h"

namespace areal::delta {
namespace {

constexpr std::uint32_t kUpperHalf = 0xFFFF0000U;
constexpr std::uint32_t kInfinityBits = 0x7F800000U;

template <class V>
using Floats = typename V::Floats;
template <class V>
using Words = typename V::Words;
template <class V>
using Mask = typename V::Mask;

// bf16 bits in the upper half of each word; the lower half is rubbish. NaN may give anything.
template <class V>
inline Words<V> rounded(Words<V> bits) {
  const Words<V> last_kept = V::meet(V::upper_half(bits), V::word(1));
  return V::add(V::add(bits, V::word(0x7FFF)), last_kept);
}

template <class V>
inline Words<V> canonical(Floats<V> value, Words<V> rounded_bits) {
  return V::select(V::is_nan(value), V::word(std::uint32_t{0x7FC0} << 16), rounded_bits);
}

template <class V>
inline Floats<V> magnitude_of(Floats<V> value) {
  return V::floats(V::meet(V::words(value), V::word(0x7FFFFFFF)));
}

template <class V>
struct ProvenRule {
  explicit ProvenRule(const ProvenScalars& by) : scalars(by) {}

  // Whether each element must be sent. `current` is rounded(p).
  [[gnu::always_inline]] inline Mask<V> marks(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current) const {
    const Mask<V> is_still = V::equal(V::words(m), V::word(0));
    const Floats<V> least_v = V::select(is_still, V::all(0.0F), V::all(scalars.least_v));
    const Mask<V> is_inside = V::both(V::at_most(least_v, v), V::at_most(v, V::all(kProvenGreatestV)));

    const Floats<V> root = V::root(V::times(v, V::all(scalars.inverse_bc2)));
    const Floats<V> update = V::over(V::times(V::all(scalars.step_size), m), V::plus(root, V::all(scalars.epsilon)));
    const Floats<V> back = V::plus(update, V::times(V::all(scalars.growth), V::plus(p, update)));

    const Floats<V> size = magnitude_of<V>(p);
    const Floats<V> floor = V::all(kProvenFloor);
    const Floats<V> decayed = V::plus(V::plus(size, size), V::all(scalars.zero_floor));
    const Floats<V> underflow = V::select(is_still, V::least(decayed, floor), floor);
    const Floats<V> of_weight =
        V::times(V::select(is_still, V::all(scalars.still_error), V::all(scalars.moved_error)), size);
    const Floats<V> of_update = V::times(V::all(scalars.update_error), magnitude_of<V>(update));
    const Floats<V> radius = V::plus(V::plus(of_weight, of_update), underflow);
    const Floats<V> lo = V::plus(p, V::minus(back, radius));
    const Floats<V> hi = V::plus(p, V::plus(back, radius));

    const Words<V> differs =
        V::join(V::differ(rounded<V>(V::words(lo)), current), V::differ(rounded<V>(V::words(hi)), current));
    return V::either(V::inverse(V::both(is_inside, V::at_most(lo, hi))), V::any_of(differs, kUpperHalf));
  }

  ProvenScalars scalars;  // A copy, so that stores cannot change it.
};

template <class V>
struct MarginRule {
  explicit MarginRule(const MarginScalars& by) : scalars(by) {}

  [[gnu::always_inline]] inline Mask<V> marks(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current) const {
    const Floats<V> denominator = V::plus(V::root(V::over(v, V::all(scalars.bc2))), V::all(scalars.epsilon));
    const Floats<V> update = V::over(V::times(V::all(scalars.step_size), m), denominator);
    const Floats<V> sum = V::plus(p, update);
    // Dividing by 1 changes nothing, and costs.
    const Floats<V> old = scalars.decay == 1.0F ? sum : V::over(sum, V::all(scalars.decay));
    const Words<V> now = V::meet(canonical<V>(p, current), V::word(kUpperHalf));
    const Words<V> then = canonical<V>(old, rounded<V>(V::words(old)));
    return V::either(V::any_of(V::differ(then, now), kUpperHalf), is_near(old, now));
  }

  // near_rounding_boundary().
  [[gnu::always_inline]] inline Mask<V> is_near(Floats<V> old, Words<V> now) const {
    const Floats<V> current = V::floats(now);
    const Words<V> size = V::meet(now, V::word(0x7FFFFFFF));
    const Mask<V> is_below = V::below(old, current);
    // Towards zero the neighbour has smaller bits, away from it larger ones.
    const Mask<V> is_inwards = V::exclusive(is_below, V::has_sign(now));
    const Words<V> beside = V::add(now, V::select(is_inwards, V::word(kUpperHalf), V::word(0x10000)));
    const Words<V> around_zero = V::select(is_below, V::word(0x80010000), V::word(0x00010000));
    const Words<V> neighbour = V::select(V::equal(size, V::word(0)), around_zero, beside);
    const Floats<V> gap = magnitude_of<V>(V::minus(current, V::floats(neighbour)));
    const Floats<V> distance = magnitude_of<V>(V::minus(current, old));
    const Floats<V> limit = V::times(V::times(gap, V::all(0.5F)), V::all(1.0F - scalars.margin));
    const Mask<V> is_finite = V::both(V::is_finite(old), V::is_finite(current));
    return V::both(is_finite, V::at_most(limit, distance));
  }

  MarginScalars scalars;
};

template <class V, class Rule>
[[gnu::always_inline]] inline std::uint32_t store_marked(const Rule& rule, Floats<V> p, Floats<V> m, Floats<V> v,
                                                         std::uint32_t valid, Words<V> places, std::int32_t* indices,
                                                         std::uint16_t* values) {
  const Words<V> current = rounded<V>(V::words(p));
  const std::uint32_t marked = V::lanes(rule.marks(p, m, v, current)) & valid;
  V::store_packed(marked, places, V::upper_half(canonical<V>(p, current)), indices, values);
  return static_cast<std::uint32_t>(__builtin_popcount(marked));
}

template <class V, class Rule>
[[gnu::always_inline]] inline std::uint32_t find_in(const Rule& rule, KernelBlock block) {
  constexpr std::uint32_t kAll = (1U << V::kWidth) - 1;
  std::uint32_t found = 0;
  std::uint32_t i = 0;
  Words<V> places = V::add(V::counting(), V::word(static_cast<std::uint32_t>(block.first)));
  for (; i + V::kWidth <= block.count; i += V::kWidth) {
    found += store_marked<V>(rule, V::load(block.weights + i), V::load(block.exp_avg + i),
                             V::load(block.exp_avg_sq + i), kAll, places, block.indices + found, block.values + found);
    places = V::add(places, V::word(V::kWidth));
  }
  if (i < block.count) {
    const std::uint32_t rest = block.count - i;
    found += store_marked<V>(rule, V::load_some(block.weights + i, rest), V::load_some(block.exp_avg + i, rest),
                             V::load_some(block.exp_avg_sq + i, rest), (1U << rest) - 1, places, block.indices + found,
                             block.values + found);
  }
  return found;
}

}  // namespace
}  // namespace areal::delta
