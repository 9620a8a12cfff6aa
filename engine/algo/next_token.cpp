#include "engine/algo/next_token.h"

#include <fmt/format.h>

namespace areal::algo {

Status check_prompts(const Rows& rows, Mask trained) {
  AREAL_CHECK(trained.size() == rows.elements());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows.length(row) == 0 || trained[rows.begin(row)] == 0) continue;
    return Error{Errc::kInvalid, fmt::format("row {} trains its first token: nothing predicts it", row)};
  }
  return Unit{};
}

}  // namespace areal::algo
