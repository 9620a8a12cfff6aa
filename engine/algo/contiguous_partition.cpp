#include "engine/algo/contiguous_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace areal::algo {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Cuts {
  std::int64_t greatest = kNever;
  std::vector<Run> runs;
};

class Cutter {
 public:
  Cutter(std::span<const std::int64_t> values, std::size_t k, std::size_t min_size)
      : sums_(values.size() + 1), k_(k), min_size_(min_size) {
    for (std::size_t at = 0; at < values.size(); ++at) sums_[at + 1] = sums_[at] + values[at];
  }

  // All sums of runs that can be the least of k, in descending order.
  [[nodiscard]] std::vector<std::int64_t> least_sums() const {
    std::vector<std::int64_t> found;
    const auto parts = static_cast<std::int64_t>(k_);
    for (std::size_t end = min_size_; end < sums_.size(); ++end) {
      for (std::size_t begin = 0; begin + min_size_ <= end; ++begin) {
        const std::int64_t sum = sums_[end] - sums_[begin];
        if (sum <= sums_.back() / parts) found.push_back(sum);
      }
    }
    std::ranges::stable_sort(found, [](std::int64_t a, std::int64_t b) { return a > b; });
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  // The least greatest sum with no run under `least`.
  [[nodiscard]] Cuts cut(std::int64_t least) const {
    const std::size_t n = sums_.size() - 1;
    std::vector<std::vector<std::int64_t>> best(k_ + 1, std::vector<std::int64_t>(n + 1, kNever));
    std::vector<std::vector<std::size_t>> from(k_ + 1, std::vector<std::size_t>(n + 1, 0));
    best[0][0] = 0;
    for (std::size_t run = 1; run <= k_; ++run) {
      for (std::size_t end = run * min_size_; end <= n; ++end) {
        for (std::size_t begin = (run - 1) * min_size_; begin + min_size_ <= end; ++begin) {
          const std::int64_t sum = sums_[end] - sums_[begin];
          if (best[run - 1][begin] == kNever || sum < least) continue;
          const std::int64_t greatest = std::max(best[run - 1][begin], sum);
          if (greatest >= best[run][end]) continue;
          best[run][end] = greatest;
          from[run][end] = begin;
        }
      }
    }
    Cuts cuts{best[k_][n], std::vector<Run>(k_)};
    if (cuts.greatest == kNever) return cuts;
    for (std::size_t run = k_, end = n; run > 0; end = from[run][end], --run)
      cuts.runs[run - 1] = {from[run][end], end};
    return cuts;
  }

  [[nodiscard]] std::int64_t total() const { return sums_.back(); }

 private:
  std::vector<std::int64_t> sums_;
  std::size_t k_;
  std::size_t min_size_;
};

}  // namespace

Result<std::vector<Run>> contiguous_partition(std::span<const std::int64_t> values, std::size_t k,
                                              std::size_t min_size) {
  if (k == 0 || min_size == 0) return Error{Errc::kInvalid, "a partition into no runs, or into empty ones"};
  if (values.size() / k < min_size) {
    return Error{Errc::kInvalid, fmt::format("{} values for {} runs of at least {}", values.size(), k, min_size)};
  }
  if (std::ranges::any_of(values, [](std::int64_t value) { return value < 0; })) {
    return Error{Errc::kInvalid, "a negative value"};
  }
  AREAL_TRY(check_sums(values));
  const Cutter cutter(values, k, min_size);
  if (cutter.total() == kNever) return Error{Errc::kInvalid, "the sum of all values is beyond what can be compared"};
  const auto parts = static_cast<std::int64_t>(k);
  const std::int64_t mean_up = cutter.total() / parts + (cutter.total() % parts == 0 ? 0 : 1);
  std::vector<Run> best;
  std::int64_t difference = kNever;
  for (const std::int64_t least : cutter.least_sums()) {
    if (difference != kNever && mean_up - least >= difference) break;
    Cuts cuts = cutter.cut(least);
    if (cuts.greatest == kNever || cuts.greatest - least >= difference) continue;
    difference = cuts.greatest - least;
    best = std::move(cuts.runs);
  }
  return best;
}

}  // namespace areal::algo
