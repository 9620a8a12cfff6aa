// What the teachers of one trajectory say together: the weighted sum of their log-probabilities, and the sum of
// weights.
//
// logp_sum[t] = sum over j of w_j * L_j[t]; weight_sum[t] = sum over j of w_j, the same at every t. Weights are not
// normalised. [T] float32, added up in double in the order of the teachers. Pure functions.
// Source: the targets of multi-teacher on-policy distillation (weighted reverse Kullback-Leibler divergence).
#pragma once
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

// One teacher's share: its log-probability of each token, [T].
struct TeacherScore {
  std::span<const float> logp;
  double weight = 0;
};

struct MopdTarget {
  std::vector<float> logp_sum;
  std::vector<float> weight_sum;
};

// kInvalid: no score at all; scores of different lengths; a weight that is not a finite number above 0;
// weights whose sum is 0 or infinite in float32.
Result<MopdTarget> mopd_target(std::span<const TeacherScore> scores);

}  // namespace areal::algo
