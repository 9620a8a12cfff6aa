// Brings the records of several ranks, trackers or workers together; see stats_tracker.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/algo/stats_tracker.h"
#include "engine/base/check.h"

namespace areal::algo {

namespace {

constexpr std::string_view kCount = "__count";

const StatRecord* find_record(const StatRecords& records, std::string_view key) {
  const auto place = std::ranges::lower_bound(
      records, key, {}, [](const StatRecord& record) -> std::string_view { return record.key.key; });
  return place == records.end() || place->key.key != key ? nullptr : &*place;
}

// The value under `key`, added at its place if it is new.
double& value_of(Stats& stats, std::string_view key) {
  const auto place =
      std::ranges::lower_bound(stats, key, {}, [](const auto& entry) -> std::string_view { return entry.first; });
  if (place != stats.end() && place->first == key) return place->second;
  return stats.insert(place, {std::string(key), 0.0})->second;
}

const double* find_value(const Stats& stats, std::string_view key) {
  const auto place = std::ranges::find_if(stats, [&](const auto& entry) { return entry.first == key; });
  return place == stats.end() ? nullptr : &place->second;
}

void export_key(const StatKey& key, const StatPartial& partial, Stats& stats) {
  const auto put = [&](std::string_view ending, double value) {
    stats.emplace_back(fmt::format("{}{}", key.key, ending), value);
  };
  const double average = partial.sum / partial.count;
  switch (key.reduction) {
    case Reduction::kScalar:
      put("", partial.count == 0 ? 0.0 : average);
      put(kCount, partial.count);
      return;
    case Reduction::kSum:
      put("", partial.sum);
      return;
    case Reduction::kAverage:
      if (partial.count > 0) put("", average);
      return;
    case Reduction::kMinimum:
      if (!std::isinf(partial.min)) put("", partial.min);
      return;
    case Reduction::kMaximum:
      if (!std::isinf(partial.max)) put("", partial.max);
      return;
    case Reduction::kAverageMinMax:
      if (partial.count > 0) put("/avg", average);
      if (!std::isinf(partial.min)) put("/min", partial.min);
      if (!std::isinf(partial.max)) put("/max", partial.max);
      return;
  }
}

}  // namespace

Result<std::vector<StatKey>> merge_stat_keys(std::span<const RankKeys> ranks) {
  std::vector<StatKey> merged;
  for (const RankKeys& rank : ranks) {
    for (const StatKey& key : rank.keys) {
      const auto place = std::ranges::lower_bound(merged, key.key, {}, &StatKey::key);
      if (place == merged.end() || place->key != key.key) {
        merged.insert(place, key);
        continue;
      }
      if (place->reduction != key.reduction || place->denominator != key.denominator) {
        return Error{Errc::kInvalid, fmt::format("two ranks record '{}' differently", key.key)};
      }
      place->wide = place->wide || key.wide;
    }
  }
  for (const StatKey& key : merged) {
    for (std::size_t rank = 0; key.wide && rank < ranks.size(); ++rank) {
      const auto own = std::ranges::find(ranks[rank].keys, key.key, &StatKey::key);
      const bool says_so = own != ranks[rank].keys.end() && own->wide;
      if (!says_so && !ranks[rank].knows_wide_group) {
        return Error{Errc::kUnsupported, fmt::format("rank {} does not know the group of '{}'", rank, key.key)};
      }
    }
  }
  return merged;
}

std::vector<StatCollective> stat_collectives(std::span<const StatKey> merged) {
  std::vector<StatCollective> wanted;
  for (const StatKey& key : merged) {
    const bool averages = key.reduction == Reduction::kAverage || key.reduction == Reduction::kAverageMinMax ||
                          key.reduction == Reduction::kScalar;
    const bool both_ends = key.reduction == Reduction::kAverageMinMax;
    const auto ask = [&](StatCollectiveKind kind) { wanted.push_back({key.key, kind, key.wide}); };
    if (averages || key.reduction == Reduction::kSum) ask(StatCollectiveKind::kSum);
    if (averages) ask(StatCollectiveKind::kSum);
    if (both_ends || key.reduction == Reduction::kMinimum) ask(StatCollectiveKind::kMinimum);
    if (both_ends || key.reduction == Reduction::kMaximum) ask(StatCollectiveKind::kMaximum);
  }
  return wanted;
}

Stats reduce_stats(std::span<const StatKey> merged, std::span<const StatRecords> ranks) {
  Stats stats;
  for (const StatKey& key : merged) {
    StatPartial all;
    for (const StatRecords& records : ranks) {
      if (const StatRecord* record = find_record(records, key.key); record != nullptr) all.merge(record->partial);
    }
    export_key(key, all, stats);
  }
  return stats;
}

JoinedStats join_stats(std::span<const Stats> exports) {
  JoinedStats joined;
  for (const Stats& stats : exports) {
    for (const auto& [key, value] : stats) {
      if (find_value(joined.stats, key) != nullptr) joined.repeated.push_back(key);
      value_of(joined.stats, key) = value;
    }
  }
  return joined;
}

Stats average_workers(std::span<const Stats> workers) {
  Stats sums;
  Stats counts;
  for (const Stats& worker : workers) {
    for (const auto& [key, value] : worker) {
      if (std::string_view(key).ends_with(kCount)) continue;
      const double* found = find_value(worker, fmt::format("{}{}", key, kCount));
      const double weight = found == nullptr ? 1 : *found;
      if (weight == 0) continue;  // Whatever the value is, a NaN even.
      value_of(sums, key) += weight * value;
      value_of(counts, key) += weight;
    }
  }
  for (auto& [key, sum] : sums) sum /= *find_value(counts, key);
  return sums;
}

}  // namespace areal::algo
