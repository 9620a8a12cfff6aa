#include "engine/algo/microbatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/algo/first_fit.h"
#include "engine/algo/karmarkar_karp.h"
#include "engine/base/check.h"

namespace areal::algo {

namespace {

Result<Groups> packed(Packer packer, Lengths lengths, const PackLimits& limits) {
  switch (packer) {
    case Packer::kFirstFit:
      return first_fit_decreasing(lengths, limits);
    case Packer::kDifferencing: {
      auto groups = differencing_pack(lengths, limits);
      if (!groups) return std::move(groups).error();
      return std::move(groups->groups);
    }
  }
  AREAL_CHECK(false);
}

}  // namespace

std::optional<Packer> packer_from(std::string_view name) {
  if (name == "ffd") return Packer::kFirstFit;
  if (name == "kk") return Packer::kDifferencing;
  return std::nullopt;
}

Result<Groups> microbatches(Lengths lengths, const MicrobatchSpec& spec) {
  if (!spec.max_tokens) return Error{Errc::kInvalid, "micro-batches without a limit of tokens"};
  auto groups = packed(spec.packer, lengths, {*spec.max_tokens, spec.min_count, spec.divisor});
  if (!groups) return std::move(groups).error();
  for (auto& group : *groups) std::ranges::stable_sort(group);
  std::ranges::stable_sort(*groups);
  return groups;
}

Result<std::vector<Groups>> agreed_microbatches(std::span<const std::vector<std::int64_t>> lengths,
                                                MicrobatchSpec spec) {
  while (true) {
    std::vector<Groups> all;
    std::size_t most = 0;
    std::size_t fewest = static_cast<std::size_t>(-1);
    for (const auto& own : lengths) {
      auto groups = microbatches(own, spec);
      if (!groups) return std::move(groups).error();
      most = std::max(most, groups->size());
      fewest = std::min(fewest, groups->size());
      all.push_back(*std::move(groups));
    }
    if (all.empty() || most == fewest) return all;
    if (static_cast<std::int64_t>(most) <= spec.min_count) {
      return Error{Errc::kInvalid, fmt::format("a rank makes {} micro-batches where another makes {}", fewest, most)};
    }
    spec.min_count = static_cast<std::int64_t>(most);
  }
}

Result<StepSchedule> step_schedule(std::span<const std::int64_t> counts, std::int64_t wanted) {
  std::int64_t total = 0;
  std::int64_t greatest = 0;
  for (const std::int64_t own : counts) {
    if (own < 0) return Error{Errc::kInvalid, "a negative number of mini-batches"};
    if (__builtin_add_overflow(total, own, &total)) return Error{Errc::kInvalid, "mini-batches beyond 64 bits"};
    greatest = std::max(greatest, own);
  }
  if (total == 0 || wanted < 1) return Error{Errc::kInvalid, "no mini-batch to run"};
  StepSchedule schedule;
  schedule.steps = static_cast<std::size_t>(std::max(std::min(wanted, total), greatest));
  std::size_t before = 0;
  for (const std::int64_t own : counts) {
    auto& slots = schedule.slots.emplace_back(schedule.steps);
    for (std::size_t at = 0; at < static_cast<std::size_t>(own); ++at) slots[(before + at) % schedule.steps] = at;
    before += static_cast<std::size_t>(own);
  }
  return schedule;
}

Result<std::int64_t> padded_count(std::int64_t items, std::int64_t ranks, std::int64_t unit) {
  if (items < 0 || ranks < 1 || unit < 1) {
    return Error{Errc::kInvalid, fmt::format("{} items for {} ranks in units of {}", items, ranks, unit)};
  }
  std::int64_t step = 0;
  std::int64_t padded = 0;
  if (__builtin_mul_overflow(ranks, unit, &step) ||
      __builtin_mul_overflow(items / step + (items % step == 0 ? 0 : 1), step, &padded)) {
    return Error{Errc::kInvalid,
                 fmt::format("{} items for {} ranks in units of {}: beyond 64 bits", items, ranks, unit)};
  }
  return padded;
}

}  // namespace areal::algo
