// The rule by which a device marks elements of one tensor, and a screen that decides nearly all of them cheaply.
//
// The rule itself is that of the CPU: the proven interval (proven_bound.h) or the reference's relative margin
// (change_mask.h), in correctly rounded arithmetic. The screen computes the weight before the step with approximate
// roots and reciprocals and looks at its distance from the current bf16 value, in steps of fp32 bit patterns: half of
// 2^16 steps up and down lies the rounding boundary. Far enough inside, the rule cannot mark; far enough outside, it
// must; between, the rule is evaluated. So the result is always the rule's, and seldom its cost.
//
// Why the limits hold. With e = 2^-24, one e |p| is at most 1.02 steps, also where the binade below p's is entered.
// Inside the boundaries |w - p| <= 2^-7 |p|, so |u| <= q |p| with q = 2^-6.9 + growth. The screen's w and the rule's
// differ by at most 5 e |p| + 48 e |u|: roundings of (1 + growth), of its product, of the sum and of the rule's sum; 48
// covers root and reciprocal (each 2 e at most), five products, and second moments that are flushed to zero. The rule's
// interval reaches A |p| + B |u| + T further, T <= e |p| / 16. The sum times 1.02, and two steps more, is the limit.
// Outside the boundaries the interval does not matter, only that the rule's own w is outside as well.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine/delta/bf16.h"
#include "engine/delta/change_mask.h"
#include "engine/delta/host_device.h"
#include "engine/delta/proven_bound.h"

namespace areal::delta::cuda {

enum class Margin : std::uint32_t { kProven, kReference };

// What stays the same for all elements of a tensor; copied to devices as it is.
struct ChangeRule {
  Margin margin = Margin::kProven;
  // The screen. Distances in steps from the current bf16 value; equal_within = 0 sends every element to the rule.
  std::uint32_t equal_within = 0;
  std::uint32_t changed_beyond = 0xFFFFFFFF;
  float root_scale = 0;  // sqrt(1 / bc2).
  float epsilon = 0;
  float step_size = 0;  // (1 + growth) lr / bc1.
  float scale = 0;      // 1 + growth.
  float margin_rel = 0;
  ProvenScalars proven;
  // invert_adamw()'s scalars.
  float reference_step_size = 0;
  float reference_bc2 = 0;
  float reference_epsilon = 0;
  float reference_decay = 0;
};

// By the proven interval. Never fails: settings outside its preconditions mark every element.
ChangeRule proven_rule(const ProvenStep& step);
// By the reference's margin. REQUIRES: 0 <= margin_rel < 1.
ChangeRule reference_rule(const ProvenStep& step, float margin_rel = kReferenceMargin);

enum class Screened : std::uint32_t { kEqual, kChanged, kUnsure };

// Weights outside this range go to the rule: below, what underflow costs is no longer small against a step.
inline constexpr float kScreenLeastWeight = 0x1p-44F;
inline constexpr float kScreenGreatestWeight = 0x1p+60F;

// `current` holds the bits of bf16(weight) in its upper half. `approximate` has root(x) and reciprocal(x) with relative
// errors of at most 2^-22; roots of numbers below 2^-126 may be 0.
template <class Approximate>
AREAL_HOST_DEVICE inline Screened screen(const ChangeRule& rule, float weight, float exp_avg, float exp_avg_sq,
                                         std::uint32_t current, const Approximate& approximate) {
  const float denominator = approximate.fused(approximate.root(exp_avg_sq), rule.root_scale, rule.epsilon);
  const float before = approximate.fused(proven::product(exp_avg, rule.step_size), approximate.reciprocal(denominator),
                                         proven::product(weight, rule.scale));
  const auto apart = static_cast<std::int32_t>(float_bits(before) - current);
  const std::uint32_t distance = apart < 0 ? 0U - static_cast<std::uint32_t>(apart) : static_cast<std::uint32_t>(apart);
  const float size = proven::magnitude(weight);
  // Written so that NaNs are not in range. A negative second moment, however small, has no root: devices flush it.
  const bool in_range = size >= kScreenLeastWeight && size <= kScreenGreatestWeight && exp_avg_sq >= 0.0F &&
                        exp_avg_sq <= kProvenGreatestV;
  if (in_range && distance < rule.equal_within) return Screened::kEqual;
  if (in_range && distance > rule.changed_beyond) return Screened::kChanged;
  return Screened::kUnsure;
}

// The rule itself. REQUIRES: current == to_bf16(weight).
AREAL_HOST_DEVICE inline bool rule_marks(const ChangeRule& rule, float weight, float exp_avg, float exp_avg_sq,
                                         std::uint16_t current) {
  if (rule.margin == Margin::kProven) {
    return must_mark(proven_interval(rule.proven, weight, exp_avg, exp_avg_sq), current);
  }
  const float denominator =
      proven::sum(proven::root(proven::quotient(exp_avg_sq, rule.reference_bc2)), rule.reference_epsilon);
  const float update = proven::quotient(proven::product(rule.reference_step_size, exp_avg), denominator);
  const float before = proven::quotient(proven::sum(weight, update), rule.reference_decay);
  return bf16_changed(before, current, rule.margin_rel);
}

}  // namespace areal::delta::cuda
