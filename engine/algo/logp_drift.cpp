#include "engine/algo/logp_drift.h"

#include <cmath>

#include "engine/base/check.h"

namespace areal::algo {

LogpDrift logp_drift(std::span<const float> old_logp, std::span<const float> new_logp, Mask mask) {
  AREAL_CHECK(old_logp.size() == mask.size() && new_logp.size() == mask.size());
  LogpDrift drift{.difference = std::vector<float>(mask.size(), 0.0F),
                  .absolute = std::vector<float>(mask.size(), 0.0F)};
  for (std::size_t at = 0; at < mask.size(); ++at) {
    if (mask[at] == 0) continue;
    drift.difference[at] = old_logp[at] - new_logp[at];
    drift.absolute[at] = std::abs(drift.difference[at]);
  }
  drift.mean = masked_mean<float>(drift.difference, mask);
  drift.mean_absolute = masked_mean<float>(drift.absolute, mask);
  return drift;
}

}  // namespace areal::algo
