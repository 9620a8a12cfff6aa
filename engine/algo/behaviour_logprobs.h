// Log-probabilities of the policy that made the tokens, as the rollout recorded them, kept apart from the batch.
//
// A trainer may overwrite its batch's log-probabilities with recomputed ones. What corrects for old rollouts must not
// see those: its ratio would be 1. So this is captured first and cannot be changed: aligned with predictions (rolled
// left by one within each row), 0 where nothing is trained, whatever stood there. A value; safe to share between
// threads.
#pragma once
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/next_token.h"
#include "engine/algo/rows.h"
#include "engine/base/check.h"

namespace areal::algo {

class BehaviourLogprobs {
 public:
  // `recorded` and `loss_mask` at the tokens' own places. REQUIRES: one entry of both for each element of `rows`.
  static BehaviourLogprobs capture(const Rows& rows, std::span<const float> recorded, Mask loss_mask) {
    AREAL_CHECK(recorded.size() == rows.elements() && loss_mask.size() == rows.elements());
    std::vector<float> trained(recorded.size());
    for (std::size_t at = 0; at < recorded.size(); ++at) trained[at] = loss_mask[at] != 0 ? recorded[at] : 0.0F;
    BehaviourLogprobs made;
    made.values_ = rolled_left<float>(rows, trained);
    return made;
  }

  [[nodiscard]] std::span<const float> view() const { return values_; }

 private:
  std::vector<float> values_;
};

}  // namespace areal::algo
