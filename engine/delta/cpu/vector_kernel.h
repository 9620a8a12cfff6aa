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

// bf16 bits in the upper half of each word, 0 in the lower one. NaN may give anything.
template <class V>
inline Words<V> rounded(Words<V> bits) {
  const Words<V> last_kept = V::meet(V::upper_half(bits), V::word(1));
  return V::meet(V::add(V::add(bits, V::word(0x7FFF)), last_kept), V::word(kUpperHalf));
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
  Floats<V> least_v = V::all(kProvenGreatestV);
  Floats<V> most_v = V::all(0.0F);
};

template <class V>
struct ProvenRule {
  explicit ProvenRule(const ProvenScalars& by) : scalars(by) {}

  struct Interval {
    Floats<V> along;  // w, seen from zero.
    Floats<V> radius;
  };

  [[gnu::always_inline]] inline Interval interval(Floats<V> p, Floats<V> m, Floats<V> v, Floats<V> of_weight) const {
    const Floats<V> root = V::root(V::times(v, V::all(scalars.inverse_bc2)));
    const Floats<V> update = V::over(V::times(V::all(scalars.step_size), m), V::plus(root, V::all(scalars.epsilon)));
    const Floats<V> back = V::plus(V::times(V::all(scalars.whole_growth), update), V::times(V::all(scalars.growth), p));
    const Words<V> sign = V::meet(V::words(p), V::word(0x80000000));
    const Floats<V> of_update = V::times(V::all(scalars.update_error), magnitude_of<V>(update));
    return {V::floats(V::differ(V::words(back), sign)), V::plus(of_update, of_weight)};
  }

  // must_mark(). `inner` are the bits of where the cell ends towards zero.
  [[gnu::always_inline]] inline Mask<V> leaves_cell(const Interval& at, Floats<V> size, Words<V> cell,
                                                    Words<V> inner) const {
    const Floats<V> outwards = V::minus(V::floats(V::add(cell, V::word(0x8000))), size);
    const Floats<V> inwards = V::minus(size, V::floats(inner));
    return V::either(V::is_not_below(V::plus(at.along, at.radius), outwards),
                     V::is_not_below(V::minus(at.radius, at.along), inwards));
  }

  // Where every m is another than +0 and every v in its range: less work, and right for zeros too, because their radius
  // is more than their cell.
  [[gnu::always_inline]] inline std::uint32_t usual(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current,
                                                    Extremes<V>& seen) const {
    const Floats<V> size = magnitude_of<V>(p);
    const Words<V> cell = V::meet(current, V::word(0x7FFFFFFF));
    seen.least_m = V::smaller(seen.least_m, V::words(m));
    seen.least_v = V::least(v, seen.least_v);
    seen.most_v = V::most(v, seen.most_v);
    const Floats<V> of_weight = V::plus(V::times(V::all(scalars.moved_error), size), V::all(kProvenFloor));
    return V::lanes(leaves_cell(interval(p, m, v, of_weight), size, cell, V::subtract(cell, V::word(0x8000))));
  }

  // Whether usual() was right for all elements seen. A NaN of v marks in usual() as well.
  [[gnu::always_inline]] inline bool was_usual(const Extremes<V>& seen) const {
    const Mask<V> m_is_zero = V::equal(seen.least_m, V::word(0));
    const Mask<V> v_fits =
        V::both(V::at_most(V::all(scalars.least_v), seen.least_v), V::at_most(seen.most_v, V::all(kProvenGreatestV)));
    return V::lanes(V::either(m_is_zero, V::inverse(v_fits))) == 0;
  }

  // Whether each element must be sent, whatever it is.
  [[gnu::always_inline]] inline std::uint32_t marks(Floats<V> p, Floats<V> m, Floats<V> v, Words<V> current) const {
    const Mask<V> is_still = V::equal(V::words(m), V::word(0));
    const Floats<V> least_v = V::select(is_still, V::all(0.0F), V::all(scalars.least_v));
    const Mask<V> is_inside = V::both(V::at_most(least_v, v), V::at_most(v, V::all(kProvenGreatestV)));
    const Floats<V> size = magnitude_of<V>(p);
    const Floats<V> floor = V::all(kProvenFloor);
    const Floats<V> decayed = V::plus(V::plus(size, size), V::all(scalars.zero_floor));
    const Floats<V> underflow = V::select(is_still, V::least(decayed, floor), floor);
    const Floats<V> error = V::select(is_still, V::all(scalars.still_error), V::all(scalars.moved_error));
    const Floats<V> of_weight = V::plus(V::times(error, size), underflow);
    const Words<V> cell = V::meet(current, V::word(0x7FFFFFFF));
    const Words<V> inner =
        V::select(V::equal(cell, V::word(0)), V::word(0x80000001), V::subtract(cell, V::word(0x8000)));
    const Mask<V> leaves = leaves_cell(interval(p, m, v, of_weight), size, cell, inner);
    return V::lanes(V::either(leaves, V::inverse(is_inside)));
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
    return V::lanes(V::either(V::inverse(V::equal(then, now)), is_near(old, now)));
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

// Each element by rule.marks(), from begin on; the last ones need not fill a vector.
template <class V, class Rule>
[[gnu::always_inline]] inline void find_each(const Rule& rule, const KernelBlock& block, std::uint32_t begin,
                                             std::uint32_t end, MarkedBits& bits) {
  std::uint32_t i = begin;
  for (; i + V::kWidth <= end; i += V::kWidth) {
    const Floats<V> p = V::load(block.weights + i);
    V::put(bits, i, rule.marks(p, V::load(block.exp_avg + i), V::load(block.exp_avg_sq + i), rounded<V>(V::words(p))));
  }
  if (i == end) return;
  const std::uint32_t rest = end - i;
  const Floats<V> p = V::load_some(block.weights + i, rest);
  const std::uint32_t marked = rule.marks(p, V::load_some(block.exp_avg + i, rest),
                                          V::load_some(block.exp_avg_sq + i, rest), rounded<V>(V::words(p)));
  V::put(bits, i, marked & ((1U << rest) - 1));
}

// The last word may be filled in part.
inline void clear_last(const KernelBlock& block, MarkedBits& bits) {
  if (block.count % 64 != 0) bits.words[block.count / 64] = 0;
}

template <class V>
void find_by_margin(const MarginScalars& scalars, const KernelBlock& block, MarkedBits& bits) {
  clear_last(block, bits);
  find_each<V>(MarginRule<V>(scalars), block, 0, block.count, bits);
}

// Takes the usual way first, a stretch at a time, and the other one for stretches that turn out not to be usual.
template <class V>
void find_by_proof(const ProvenScalars& scalars, const KernelBlock& block, MarkedBits& bits) {
  constexpr std::uint32_t kStretch = 256;
  clear_last(block, bits);
  const ProvenRule<V> rule(scalars);
  std::uint32_t begin = 0;
  for (; begin + kStretch <= block.count; begin += kStretch) {
    Extremes<V> seen;
    for (std::uint32_t i = begin; i < begin + kStretch; i += V::kWidth) {
      const Floats<V> p = V::load(block.weights + i);
      V::put(bits, i,
             rule.usual(p, V::load(block.exp_avg + i), V::load(block.exp_avg_sq + i), rounded<V>(V::words(p)), seen));
    }
    if (!rule.was_usual(seen)) find_each<V>(rule, block, begin, begin + kStretch, bits);
  }
  find_each<V>(rule, block, begin, block.count, bits);
}

template <class V>
Kernels kernels_of() {
  return {&find_by_proof<V>, &find_by_margin<V>};
}

}  // namespace
}  // namespace areal::delta
