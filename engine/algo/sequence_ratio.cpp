#include "engine/algo/sequence_ratio.h"

#include "engine/algo/exponential.h"

namespace areal::algo {

std::vector<SequenceRatio> sequence_ratios(const Rows& rows, std::span<const float> logprobs,
                                           std::span<const float> base, std::span<const float> advantages, Mask mask) {
  AREAL_CHECK(logprobs.size() == rows.elements() && base.size() == rows.elements());
  AREAL_CHECK(advantages.size() == rows.elements() && mask.size() == rows.elements());
  std::vector<SequenceRatio> ratios(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    SequenceRatio& result = ratios[row];
    double log_ratio = 0;
    double advantage = 0;
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      if (mask[at] == 0) continue;
      log_ratio += static_cast<double>(logprobs[at] - base[at]);
      advantage += static_cast<double>(advantages[at]);
      ++result.kept;
    }
    if (result.kept == 0) continue;
    const double kept = static_cast<double>(result.kept);
    result.ratio = exp_of<float>(static_cast<float>(log_ratio / kept));
    result.advantage = static_cast<float>(advantage / kept);
  }
  return ratios;
}

}  // namespace areal::algo
