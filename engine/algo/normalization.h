// Rewards or advantages centred and scaled, over the batch or within prompt groups.
//
// out = (x - mean) / (std + eps), float32, 0 where the mask drops the element. Mean and std are each taken over all
// kept elements of the batch, over those of a group of rows, or not at all (mean 0; std 1 and eps 0). Sums are in
// double.
//   mean, plain             S / n; 0 for n = 0
//   mean, leave one out     (S - x) / (n - 1) for each element; 0 for n <= 1; in a group of one row x itself
//   std, unbiased           sqrt(sum (x - mean)² / (n - 1)); 1 for n <= 1, and in a group of one row
//   std, biased             sqrt(sum (x - mean)² / n); 1 for n = 0
// The std is around the mean above, so leaving one out widens it. n counts elements, not rows. Means and stds of a
// group are rounded to float32 before use, as the reference stores them. If the mask keeps nothing, x comes back
// unchanged. A masked-out value is never read. Groups do not see each other. Source: spec 3.
//
// Statistics of the batch may be those of several ranks: each takes norm_totals, they are added up; each takes
// norm_squares with the sum, they are added up; each calls normalize with both. Pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"
#include "engine/base/result.h"

namespace areal::algo {

enum class NormLevel : std::uint8_t { kNone, kBatch, kGroup };

std::optional<NormLevel> norm_level_from(std::string_view name);  // "batch", "group"

struct NormConfig {
  NormLevel mean_level = NormLevel::kBatch;
  NormLevel std_level = NormLevel::kBatch;
  bool leave_one_out = false;
  bool unbiased = true;
  double eps = 1e-5;
  std::int64_t group_size = 1;  // Rows of a group where the batch does not say.
};

constexpr bool uses_group_statistics(const NormConfig& config) {
  return config.mean_level == NormLevel::kGroup || config.std_level == NormLevel::kGroup;
}

// kInvalid: group statistics with a group_size under 1.
Status check(const NormConfig& config);

struct NormBatch {
  const Rows& rows;                                          // Rewards: one element a row.
  std::span<const float> x;                                  // One for each element.
  std::optional<Mask> mask;                                  // One for each element; none: all are kept.
  std::optional<std::span<const std::int64_t>> group_sizes;  // Rows of each group, in order.
};

struct NormTotals {
  double sum = 0;
  double count = 0;  // Of kept elements.
};

NormTotals norm_totals(const NormBatch& batch);

// Sum of (x - mean)² over the kept elements, with `totals` of all ranks. kInvalid: as normalize.
Result<double> norm_squares(const NormConfig& config, const NormBatch& batch, const NormTotals& totals);

// kInvalid, with group statistics: a size that is not positive, sizes that do not add up to the number of rows, or,
// without sizes, rows that group_size does not divide; and what check() refuses.
Result<std::vector<float>> normalize(const NormConfig& config, const NormBatch& batch, const NormTotals& totals,
                                     double squares);

// All of it on one rank.
Result<std::vector<float>> normalize(const NormConfig& config, const NormBatch& batch);

}  // namespace areal::algo
