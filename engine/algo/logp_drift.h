// How far the policy has moved on the tokens of an update: old minus new log-probability.
//
// The signed mean shows a shift of all, and hides what goes both ways; the absolute one shows both. float32 in, means
// in double. Elements outside the mask are not read. Pure. Source: logp_diff and logp_abs_diff of AReaL's PPO
// statistics.
#pragma once
#include <span>
#include <vector>

#include "engine/algo/masked.h"

namespace areal::algo {

struct LogpDrift {
  std::vector<float> difference;  // (old - new) within the mask, 0 elsewhere.
  std::vector<float> absolute;
  double mean = 0;  // Signed, over the mask; 0 if it is empty.
  double mean_absolute = 0;
};

// REQUIRES: all of one length.
LogpDrift logp_drift(std::span<const float> old_logp, std::span<const float> new_logp, Mask mask);

}  // namespace areal::algo
