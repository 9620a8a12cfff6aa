#include "engine/algo/normalization.h"

#include <fmt/format.h>

#include <cmath>

namespace areal::algo {

namespace {

// A range of rows with one mean or std.
struct Slice {
  std::size_t begin = 0;  // Elements.
  std::size_t end = 0;
  std::size_t rows = 0;
};

Result<std::vector<Slice>> group_slices(const NormConfig& config, const NormBatch& batch) {
  AREAL_TRY(check(config));
  const std::size_t rows = batch.rows.size();
  std::vector<Slice> slices;
  std::size_t row = 0;
  const auto add = [&](std::size_t size) {
    slices.push_back({batch.rows.begin(row), batch.rows.end(row + size - 1), size});
    row += size;
  };
  if (!batch.group_sizes) {
    const auto size = static_cast<std::size_t>(config.group_size);
    if (rows % size != 0) {
      return Error{Errc::kInvalid, fmt::format("a batch of {} rows must be divisible by group_size {}", rows, size)};
    }
    while (row < rows) add(size);
    return slices;
  }
  for (const std::int64_t size : *batch.group_sizes) {
    if (size <= 0) return Error{Errc::kInvalid, fmt::format("group_sizes must be all positive, got {}", size)};
    if (static_cast<std::size_t>(size) > rows - row) {
      return Error{Errc::kInvalid, fmt::format("group_sizes sum must equal batch size ({}), got more", rows)};
    }
    add(static_cast<std::size_t>(size));
  }
  if (row != rows) {
    return Error{Errc::kInvalid, fmt::format("group_sizes sum ({}) must equal batch size ({})", row, rows)};
  }
  return slices;
}

class Normalizer {
 public:
  Normalizer(const NormConfig& config, const NormBatch& batch, const NormTotals& totals)
      : config_(config), batch_(batch), totals_(totals), centred_(batch.x.size(), 0) {
    AREAL_CHECK(batch.x.size() == batch.rows.elements());
    AREAL_CHECK(!batch.mask || batch.mask->size() == batch.x.size());
  }

  Status centre() {
    const Slice whole{0, batch_.x.size(), batch_.rows.size()};
    if (uses_group_statistics(config_)) {
      auto slices = group_slices(config_, batch_);
      if (!slices) return std::move(slices).error();
      groups_ = *std::move(slices);
    }
    switch (config_.mean_level) {
      case NormLevel::kNone:
        subtract(whole, [](double) { return 0.0; });
        break;
      case NormLevel::kBatch:
        subtract(whole, [&](double x) { return mean(totals_, x); });
        break;
      case NormLevel::kGroup:
        for (const Slice& group : groups_) centre_group(group);
        break;
    }
    return Unit{};
  }

  [[nodiscard]] double squares() const { return squares({0, batch_.x.size(), batch_.rows.size()}); }

  [[nodiscard]] std::vector<float> scaled(double batch_squares) const {
    std::vector<float> out(batch_.x.size(), 0.0F);
    switch (config_.std_level) {
      case NormLevel::kNone:
        divide({0, batch_.x.size(), batch_.rows.size()}, 1, out);
        break;
      case NormLevel::kBatch:
        divide({0, batch_.x.size(), batch_.rows.size()}, deviation(batch_squares, totals_.count) + config_.eps, out);
        break;
      case NormLevel::kGroup:
        for (const Slice& group : groups_) divide(group, group_deviation(group) + config_.eps, out);
        break;
    }
    return out;
  }

 private:
  [[nodiscard]] bool is_kept(std::size_t at) const { return !batch_.mask || (*batch_.mask)[at] != 0; }

  [[nodiscard]] NormTotals totals_of(const Slice& slice) const {
    NormTotals totals;
    for (std::size_t at = slice.begin; at < slice.end; ++at) {
      if (!is_kept(at)) continue;
      totals.sum += static_cast<double>(batch_.x[at]);
      totals.count += 1;
    }
    return totals;
  }

  [[nodiscard]] double mean(const NormTotals& totals, double x) const {
    if (config_.leave_one_out) return totals.count <= 1 ? 0 : (totals.sum - x) / (totals.count - 1);
    return totals.count == 0 ? 0 : totals.sum / totals.count;
  }

  void centre_group(const Slice& group) {
    const NormTotals totals = totals_of(group);
    const bool is_own_mean = config_.leave_one_out && group.rows == 1;
    subtract(group,
             [&](double x) { return is_own_mean ? x : static_cast<double>(static_cast<float>(mean(totals, x))); });
  }

  template <class Mean>
  void subtract(const Slice& slice, Mean mean) {
    for (std::size_t at = slice.begin; at < slice.end; ++at) {
      if (!is_kept(at)) continue;
      const auto x = static_cast<double>(batch_.x[at]);
      centred_[at] = x - mean(x);
    }
  }

  // What the mask drops is 0 in centred_.
  [[nodiscard]] double squares(const Slice& slice) const {
    double sum = 0;
    for (std::size_t at = slice.begin; at < slice.end; ++at) sum += centred_[at] * centred_[at];
    return sum;
  }

  [[nodiscard]] double deviation(double squares, double count) const {
    if (config_.unbiased) return count <= 1 ? 1 : std::sqrt(squares / (count - 1));
    return count == 0 ? 1 : std::sqrt(squares / count);
  }

  [[nodiscard]] double group_deviation(const Slice& group) const {
    if (config_.unbiased && group.rows == 1) return 1;
    return static_cast<double>(static_cast<float>(deviation(squares(group), totals_of(group).count)));
  }

  void divide(const Slice& slice, double by, std::vector<float>& out) const {
    for (std::size_t at = slice.begin; at < slice.end; ++at) {
      if (is_kept(at)) out[at] = static_cast<float>(centred_[at] / by);
    }
  }

  const NormConfig& config_;
  const NormBatch& batch_;
  const NormTotals& totals_;
  std::vector<Slice> groups_;
  std::vector<double> centred_;
};

}  // namespace

std::optional<NormLevel> norm_level_from(std::string_view name) {
  if (name == "batch") return NormLevel::kBatch;
  if (name == "group") return NormLevel::kGroup;
  return std::nullopt;
}

Status check(const NormConfig& config) {
  if (uses_group_statistics(config) && config.group_size < 1) {
    return Error{
        Errc::kInvalid,
        fmt::format("group_size must be a positive integer when using group normalization, got {}", config.group_size)};
  }
  return Unit{};
}

NormTotals norm_totals(const NormBatch& batch) {
  NormTotals totals;
  for (std::size_t at = 0; at < batch.x.size(); ++at) {
    if (batch.mask && (*batch.mask)[at] == 0) continue;
    totals.sum += static_cast<double>(batch.x[at]);
    totals.count += 1;
  }
  return totals;
}

Result<double> norm_squares(const NormConfig& config, const NormBatch& batch, const NormTotals& totals) {
  Normalizer normalizer(config, batch, totals);
  AREAL_TRY(normalizer.centre());
  return normalizer.squares();
}

Result<std::vector<float>> normalize(const NormConfig& config, const NormBatch& batch, const NormTotals& totals,
                                     double squares) {
  Normalizer normalizer(config, batch, totals);
  AREAL_TRY(normalizer.centre());
  if (batch.mask && count(*batch.mask) == 0) return std::vector<float>(batch.x.begin(), batch.x.end());
  return normalizer.scaled(squares);
}

Result<std::vector<float>> normalize(const NormConfig& config, const NormBatch& batch) {
  const NormTotals totals = norm_totals(batch);
  const auto squares = norm_squares(config, batch, totals);
  if (!squares) return squares.error();
  return normalize(config, batch, totals, *squares);
}

}  // namespace areal::algo
