#include "engine/algo/m2po.h"

#include <algorithm>
#include <cmath>

namespace areal::algo {

std::size_t m2po_dropped(std::span<const float> falling_m2, double threshold) {
  if (falling_m2.empty()) return 0;
  // From the least on: how many of them have a mean below the threshold, at most.
  std::size_t stay = 1;
  double sum = 0;
  for (std::size_t kept = 1; kept <= falling_m2.size(); ++kept) {
    sum += static_cast<double>(falling_m2[falling_m2.size() - kept]);
    if (sum / static_cast<double>(kept) < threshold) stay = kept;
  }
  return falling_m2.size() - stay;
}

Result<std::vector<std::uint8_t>> m2po_mask(std::span<const float> old, std::span<const float> proximal, Mask mask,
                                            double threshold) {
  if (old.size() != mask.size() || proximal.size() != mask.size()) {
    return Error{Errc::kInvalid, "old, proximal and mask differ in length"};
  }
  if (std::isnan(threshold)) return Error{Errc::kInvalid, "M2PO's threshold is no number"};
  struct Token {
    float m2 = 0;
    std::size_t at = 0;
  };
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < mask.size(); ++at) {
    if (mask[at] == 0) continue;
    const float off = old[at] - proximal[at];
    tokens.push_back({off * off, at});
  }
  std::ranges::stable_sort(tokens, [](const Token& a, const Token& b) {
    const bool a_is_nan = std::isnan(a.m2);
    const bool b_is_nan = std::isnan(b.m2);
    return a_is_nan || b_is_nan ? a_is_nan && !b_is_nan : a.m2 > b.m2;
  });
  std::vector<float> falling;
  for (const Token& token : tokens) falling.push_back(token.m2);
  std::vector<std::uint8_t> narrowed(mask.begin(), mask.end());
  const std::size_t dropped = m2po_dropped(falling, threshold);
  for (std::size_t rank = 0; rank < dropped; ++rank) narrowed[tokens[rank].at] = 0;
  return narrowed;
}

}  // namespace areal::algo
