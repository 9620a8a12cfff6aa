#include "engine/algo/loss_scale.h"

#include <fmt/format.h>

namespace areal::algo {

Result<double> loss_scale(double tokens, double tokens_of_all, double ranks) {
  if (!(tokens_of_all > 0)) return Error{Errc::kInvalid, "no rank has a token to train on"};
  if (!(tokens >= 0) || tokens > tokens_of_all) {
    return Error{Errc::kInvalid, fmt::format("{} tokens of {} in all", tokens, tokens_of_all)};
  }
  return tokens / tokens_of_all * ranks;
}

}  // namespace areal::algo
