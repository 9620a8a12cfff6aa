// What proven_bound.h's interval needs of a step, as data alone: files with target flags may include it.
#pragma once

namespace areal::delta {

// Made once a tensor, used by all its elements. All errors are in units of 1, not of 2^-24.
struct ProvenScalars {
  float step_size = 0;    // lr / bc1.
  float inverse_bc2 = 0;  // 1 / bc2.
  float epsilon = 0;
  float growth = 0;        // L = 1 / (1 - lr wd) - 1.
  float whole_growth = 1;  // 1 + L.
  float moved_error = 0;   // A: error for each |p|. NaN marks every element.
  float still_error = 0;   // A where m is +0: the step only decayed the weight.
  float update_error = 0;  // B: error for each |u|.
  float least_v = 0;       // v below this is outside, unless m is +0.
  float zero_floor = 0;    // Least radius where m is +0.
};

inline constexpr float kProvenFloor = 0x1p-72F;       // T: what underflow can cost.
inline constexpr float kProvenGreatestV = 0x1p+100F;  // v above this is outside.

}  // namespace areal::delta
