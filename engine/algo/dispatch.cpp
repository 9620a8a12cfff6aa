#include "engine/algo/dispatch.h"

#include <fmt/format.h>

#include <utility>

#include "engine/algo/balanced_greedy.h"

namespace areal::algo {

Result<Groups> dispatched(Lengths tokens, std::size_t ranks, std::size_t unit) {
  if (unit == 0 || tokens.size() % unit != 0) {
    return Error{Errc::kInvalid, fmt::format("{} items must be divisible by group_size {}", tokens.size(), unit)};
  }
  AREAL_TRY(check_sums(tokens));
  std::vector<std::int64_t> weights(tokens.size() / unit, 0);
  for (std::size_t item = 0; item < tokens.size(); ++item) weights[item / unit] += tokens[item];
  auto units = balanced_greedy(weights, ranks, Seats::kRagged);
  if (!units) return std::move(units).error();
  Groups items(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const std::size_t own : (*units)[rank]) {
      for (std::size_t item = own * unit; item < (own + 1) * unit; ++item) items[rank].push_back(item);
    }
  }
  return items;
}

}  // namespace areal::algo
