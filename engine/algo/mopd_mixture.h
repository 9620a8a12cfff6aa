// The order of samples of several data sources that are mixed for routed distillation.
//
// kProportional keeps each source's size: the mixture has sum(sizes) samples. kUniform gives each source as many as the
// largest has, its rows taken again and again in turn: sources * max(sizes). Either way source by source and row by
// row; a sampler shuffles what comes out. Source: the mixture policies of multi-teacher distillation; the order inside
// is ours.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

enum class MixturePolicy : std::uint8_t { kProportional, kUniform };

std::optional<MixturePolicy> mixture_policy_from(std::string_view name);  // "proportional", "uniform"

struct MixtureRow {
  std::size_t source = 0;
  std::uint64_t row = 0;  // In the source.
  bool operator==(const MixtureRow&) const = default;
};

// A value; safe to share between threads.
class Mixture {
 public:
  // kInvalid: kUniform with an empty source beside one that is not: it has no row to repeat; of either policy, more
  // samples than 64 bits count.
  static Result<Mixture> create(MixturePolicy policy, std::span<const std::uint64_t> source_sizes);

  [[nodiscard]] std::uint64_t length() const { return ends_.empty() ? 0 : ends_.back(); }
  // REQUIRES: index < length().
  [[nodiscard]] MixtureRow at(std::uint64_t index) const;

 private:
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> ends_;  // Where the samples of each source end in the mixture.
};

}  // namespace areal::algo
