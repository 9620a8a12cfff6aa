#include "engine/algo/mopd_mixture.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"

namespace areal::algo {

std::optional<MixturePolicy> mixture_policy_from(std::string_view name) {
  if (name == "proportional") return MixturePolicy::kProportional;
  if (name == "uniform") return MixturePolicy::kUniform;
  return std::nullopt;
}

Result<Mixture> Mixture::create(MixturePolicy policy, std::span<const std::uint64_t> source_sizes) {
  Mixture made;
  made.sizes_.assign(source_sizes.begin(), source_sizes.end());
  const std::uint64_t largest = made.sizes_.empty() ? 0 : std::ranges::max(made.sizes_);
  std::uint64_t end = 0;
  for (std::size_t source = 0; source < made.sizes_.size(); ++source) {
    const std::uint64_t size = made.sizes_[source];
    if (policy == MixturePolicy::kUniform && size == 0 && largest > 0) {
      return Error{Errc::kInvalid, fmt::format("source {} has no rows to repeat", source)};
    }
    const std::uint64_t share = policy == MixturePolicy::kUniform ? largest : size;
    if (__builtin_add_overflow(end, share, &end))
      return Error{Errc::kInvalid, "a mixture of more samples than 64 bits"};
    made.ends_.push_back(end);
  }
  return made;
}

MixtureRow Mixture::at(std::uint64_t index) const {
  AREAL_CHECK(index < length());
  const auto source = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  const std::uint64_t begin = source == 0 ? 0 : ends_[source - 1];
  return {source, (index - begin) % sizes_[source]};
}

}  // namespace areal::algo
