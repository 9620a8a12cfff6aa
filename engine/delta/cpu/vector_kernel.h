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

// What the usual case below leaves out shows in these extremes of all elements seen.
template <class V>
struct Extremes {
  Words<V> least_m = V::word(0xFFFFFFFF);  // As unsigned bits: 0 where an m is +0.
  Words<V> most_radius = V::word(0);       // As unsigned bits: infinity and more where something is not finite.
  Floats<V> least_v = V::all(kProvenGreatestV);
  Floats<V> most_v = V::all(0.0F);
};

template <class V>
struct ProvenRule {
  explicit ProvenRule(const ProvenScalars& by) : scalars(by) {}

  struct Estimate {
    Floats<V> update;
    Floats<V> back;
  };

  [[gnu::always_inline]] inline Estimate estimate(Floats<V> p, Floats<V> m, Floats<V> v) const {
    const Floats<V> root = V::root(V::times(v, V::all(scalars.inverse_bc2)));
    const Floats<V> update = V::over(V::times(V::all(scalars.step_size), m), V::plus(root, V::all(scalars.epsilon)));
    return {update, V::plus(update, V::times(V::all(scalars.growth), V::plus(p, update)))};
  }

  // Sign bit of each element that must be sent, if its interval is one.
  [[gnu::always_inline]] inline Words<V> leaves_cell(Floats<V> lo, Floats<V> hi, Words<V> current) const {
    const Words<V> below = V::distance(V::subtract(V::words(lo), current));
    const Words<V> above = V::distance(V::subtract(V::words(hi), current));
    return V::add(V::larger(below, above), V::word(0x7FFF8000));
  }

  // Where every m is another than +0, v is in its range and everything finite: half the work.
  [[gnu::always_inline]] inline std::uint32_t usual(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current,
                                                    Extremes<V>& seen) const {
    const Estimate by = estimate(p, m, v);
    const Floats<V> of_weight = V::times(V::all(scalars.moved_error), magnitude_of<V>(p));
    const Floats<V> of_update = V::times(V::all(scalars.update_error), magnitude_of<V>(by.update));
    const Floats<V> radius = V::plus(V::plus(of_weight, of_update), V::all(kProvenFloor));
    seen.least_m = V::smaller(seen.least_m, V::words(m));
    seen.most_radius = V::larger(seen.most_radius, V::words(radius));
    seen.least_v = V::least(v, seen.least_v);
    seen.most_v = V::most(v, seen.most_v);
    const Floats<V> lo = V::plus(p, V::minus(by.back, radius));
    const Floats<V> hi = V::plus(p, V::plus(by.back, radius));
    return V::signs(leaves_cell(lo, hi, current));
  }

  // Whether usual() was right for all elements seen.
  [[gnu::always_inline]] inline bool was_usual(const Extremes<V>& seen) const {
    const Mask<V> m_is_zero = V::equal(seen.least_m, V::word(0));
    const Mask<V> is_finite = V::equal(V::smaller(seen.most_radius, V::word(kInfinityBits - 1)), seen.most_radius);
    const Mask<V> v_fits =
        V::both(V::at_most(V::all(scalars.least_v), seen.least_v), V::at_most(seen.most_v, V::all(kProvenGreatestV)));
    return V::lanes(V::either(m_is_zero, V::inverse(V::both(is_finite, v_fits)))) == 0;
  }

  // Whether each element must be sent, whatever it is.
  [[gnu::always_inline]] inline std::uint32_t marks(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current) const {
    const Mask<V> is_still = V::equal(V::words(m), V::word(0));
    const Floats<V> least_v = V::select(is_still, V::all(0.0F), V::all(scalars.least_v));
    const Mask<V> is_inside = V::both(V::at_most(least_v, v), V::at_most(v, V::all(kProvenGreatestV)));
    const Estimate by = estimate(p, m, v);
    const Floats<V> size = magnitude_of<V>(p);
    const Floats<V> floor = V::all(kProvenFloor);
    const Floats<V> decayed = V::plus(V::plus(size, size), V::all(scalars.zero_floor));
    const Floats<V> underflow = V::select(is_still, V::least(decayed, floor), floor);
    const Floats<V> of_weight =
        V::times(V::select(is_still, V::all(scalars.still_error), V::all(scalars.moved_error)), size);
    const Floats<V> of_update = V::times(V::all(scalars.update_error), magnitude_of<V>(by.update));
    const Floats<V> radius = V::plus(V::plus(of_weight, of_update), underflow);
    const Floats<V> lo = V::plus(p, V::minus(by.back, radius));
    const Floats<V> hi = V::plus(p, V::plus(by.back, radius));
    const Mask<V> is_interval = V::both(is_inside, V::at_most(lo, hi));
    return V::signs(leaves_cell(lo, hi, current)) | V::lanes(V::inverse(is_interval));
  }

  ProvenScalars scalars;  // A copy, so that stores cannot change it.
};

template <class V>
struct MarginRule {
  explicit MarginRule(const MarginScalars& by) : scalars(by) {}

  [[gnu::always_inline]] inline std::uint32_t marks(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current) const {
    const Floats<V> denominator = V::plus(V::root(V::over(v, V::all(scalars.bc2))), V::all(scalars.epsilon));
    const Floats<V> update = V::over(V::times(V::all(scalars.step_size), m), denominator);
    const Floats<V> sum = V::plus(p, update);
    // Dividing by 1 changes nothing, and costs.
    const Floats<V> old = scalars.decay == 1.0F ? sum : V::over(sum, V::all(scalars.decay));
    const Words<V> now = canonical<V>(p, current);
    const Words<V> then = canonical<V>(old, rounded<V>(V::words(old)));
    return V::lanes(V::either(V::any_of(V::differ(then, now), kUpperHalf), is_near(old, now)));
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

// The block's elements from i on, of which `valid` are looked at.
template <class V>
struct Elements {
  Floats<V> p, m, v;
  Words<V> current;  // bf16 bits in the upper half; of NaN, anything.
};

template <class V>
[[gnu::always_inline]] inline Elements<V> elements_at(const KernelBlock& block, std::uint32_t i) {
  const Floats<V> p = V::load(block.weights + i);
  return {p, V::load(block.exp_avg + i), V::load(block.exp_avg_sq + i),
          V::meet(rounded<V>(V::words(p)), V::word(kUpperHalf))};
}

template <class V>
[[gnu::always_inline]] inline Words<V> places_from(std::uint32_t i) {
  return V::add(V::counting(), V::word(i));
}

// Each element by rule.marks(), with canonical NaNs. Returns how many are marked by now.
template <class V, class Rule>
[[gnu::always_inline]] inline std::uint32_t find_each(const Rule& rule, const KernelBlock& block, std::uint32_t begin,
                                                      std::uint32_t end, std::uint32_t found) {
  for (std::uint32_t i = begin; i < end; i += V::kWidth) {
    const Elements<V> at = elements_at<V>(block, i);
    const Words<V> packed = V::join(canonical<V>(at.p, at.current), places_from<V>(i));
    found += V::store_packed(rule.marks(at.p, at.m, at.v, at.current), packed, block.marked + found);
  }
  return found;
}

// What is left when whole vectors are done.
template <class V, class Rule>
[[gnu::always_inline]] inline std::uint32_t find_rest(const Rule& rule, const KernelBlock& block, std::uint32_t begin,
                                                      std::uint32_t found) {
  const std::uint32_t rest = block.count - begin;
  if (rest == 0) return found;
  const Floats<V> p = V::load_some(block.weights + begin, rest);
  const Words<V> current = V::meet(rounded<V>(V::words(p)), V::word(kUpperHalf));
  const std::uint32_t marked =
      rule.marks(p, V::load_some(block.exp_avg + begin, rest), V::load_some(block.exp_avg_sq + begin, rest), current);
  const Words<V> packed = V::join(canonical<V>(p, current), places_from<V>(begin));
  return found + V::store_packed(marked & ((1U << rest) - 1), packed, block.marked + found);
}

template <class V>
[[gnu::always_inline]] inline std::uint32_t find_by_margin(const MarginScalars& scalars, const KernelBlock& block) {
  const MarginRule<V> rule(scalars);
  const std::uint32_t whole = block.count / V::kWidth * V::kWidth;
  return find_rest<V>(rule, block, whole, find_each<V>(rule, block, 0, whole, 0));
}

// Takes the usual way first, a stretch at a time, and the other one for stretches that turn out not to be usual.
template <class V>
[[gnu::always_inline]] inline std::uint32_t find_by_proof(const ProvenScalars& scalars, const KernelBlock& block) {
  constexpr std::uint32_t kStretch = 256;
  const ProvenRule<V> rule(scalars);
  const std::uint32_t whole = block.count / V::kWidth * V::kWidth;
  std::uint32_t found = 0;
  for (std::uint32_t begin = 0; begin < whole; begin += kStretch) {
    const std::uint32_t end = begin + kStretch < whole ? begin + kStretch : whole;
    Extremes<V> seen;
    Words<V> places = places_from<V>(begin);
    std::uint32_t now = found;
    for (std::uint32_t i = begin; i < end; i += V::kWidth) {
      const Elements<V> at = elements_at<V>(block, i);
      now += V::store_packed(rule.usual(at.p, at.m, at.v, at.current, seen), V::join(at.current, places),
                             block.marked + now);
      places = V::add(places, V::word(V::kWidth));
    }
    found = rule.was_usual(seen) ? now : find_each<V>(rule, block, begin, end, found);
  }
  return find_rest<V>(rule, block, whole, found);
}

}  // namespace
}  // namespace areal::delta
