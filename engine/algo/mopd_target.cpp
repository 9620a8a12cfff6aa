#include "engine/algo/mopd_target.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>

namespace areal::algo {

Result<MopdTarget> mopd_target(std::span<const TeacherScore> scores) {
  if (scores.empty()) return Error{Errc::kInvalid, "no teacher scored this trajectory"};
  const std::size_t tokens = scores.front().logp.size();
  double weight_sum = 0;
  std::vector<double> sums(tokens, 0.0);
  for (const TeacherScore& score : scores) {
    if (score.logp.size() != tokens) {
      return Error{Errc::kInvalid, fmt::format("one teacher scored {} tokens, another {}", tokens, score.logp.size())};
    }
    if (!std::isfinite(score.weight) || score.weight <= 0) {
      return Error{Errc::kInvalid, fmt::format("a teacher's weight is {}", score.weight)};
    }
    weight_sum += score.weight;
    for (std::size_t at = 0; at < tokens; ++at) sums[at] += score.weight * static_cast<double>(score.logp[at]);
  }
  if (weight_sum > std::numeric_limits<float>::max() || static_cast<float>(weight_sum) == 0) {
    return Error{Errc::kInvalid, fmt::format("the teachers' weights add up to {}, which fp32 cannot hold", weight_sum)};
  }
  MopdTarget target;
  target.logp_sum.assign(sums.begin(), sums.end());
  target.weight_sum.assign(tokens, static_cast<float>(weight_sum));
  return target;
}

}  // namespace areal::algo
