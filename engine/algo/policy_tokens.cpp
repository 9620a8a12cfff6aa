#include "engine/algo/policy_tokens.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::algo {

std::optional<RatioLevel> ratio_level_from(std::string_view name) {
  if (name == "token") return RatioLevel::kToken;
  if (name == "sequence") return RatioLevel::kSequence;
  return std::nullopt;
}

TokenCounts token_counts(Mask mask) {
  TokenCounts counts;
  counts.total = static_cast<double>(mask.size());
  counts.valid = static_cast<double>(count(mask));
  counts.masked = counts.total - counts.valid;
  counts.masked_ratio = 1 - counts.valid / std::max(1.0, counts.total);
  return counts;
}

Status check_shapes(const PolicyTokens& tokens) {
  const std::size_t length = tokens.logprobs.size();
  const auto fits = [&](std::size_t other, const char* name) -> Status {
    if (other == length) return Unit{};
    return Error{Errc::kInvalid, fmt::format("{} has {} tokens, logprobs has {}", name, other, length)};
  };
  AREAL_TRY(fits(tokens.proximal.size(), "proximal"));
  AREAL_TRY(fits(tokens.advantages.size(), "advantages"));
  AREAL_TRY(fits(tokens.mask.size(), "mask"));
  if (!tokens.old.empty()) AREAL_TRY(fits(tokens.old.size(), "old"));
  if (tokens.rows != nullptr) AREAL_TRY(fits(tokens.rows->elements(), "rows"));
  return Unit{};
}

}  // namespace areal::algo
