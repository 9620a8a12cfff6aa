#include "engine/algo/stats_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace areal::algo {

namespace {

// A NaN wins, on either side: std::min and std::max pass over one that comes second.
double lesser(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double greater(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

void StatPartial::add(double value) {
  sum += value;
  count += 1;
  min = lesser(min, value);
  max = greater(max, value);
}

void StatPartial::merge(const StatPartial& other) {
  sum += other.sum;
  count += other.count;
  min = lesser(min, other.min);
  max = greater(max, other.max);
}

void StatsTracker::leave() {
  AREAL_CHECK(!scopes_.empty());
  scopes_.pop_back();
}

std::string StatsTracker::full_key(std::string_view key) const {
  std::string full = name_;
  for (const std::string& scope : scopes_) full += (full.empty() ? "" : "/") + scope;
  if (!full.empty()) full += "/";
  return full.append(key);
}

StatRecord* StatsTracker::record_of(const StatKey& key) {
  const auto place = std::ranges::lower_bound(records_, key.key, {}, [](const StatRecord& r) { return r.key.key; });
  if (place == records_.end() || place->key.key != key.key) {
    return &*records_.insert(place, {.key = key, .partial = {}, .masks = {}});
  }
  const bool same = place->key.reduction == key.reduction && place->key.denominator == key.denominator;
  return same ? &*place : nullptr;
}

Status StatsTracker::denominator(std::string_view key, Mask mask) {
  if (mask.empty()) return Error{Errc::kInvalid, fmt::format("denominator '{}' is empty", key)};
  // It is its own denominator: that tells it from a sum.
  const std::string full = full_key(key);
  StatRecord* record = record_of({.key = full, .reduction = Reduction::kSum, .denominator = full});
  if (record == nullptr) return Error{Errc::kInvalid, fmt::format("'{}' is recorded as something else", full)};
  record->masks.emplace_back(mask.begin(), mask.end());
  record->partial.sum += static_cast<double>(count(mask));
  record->partial.count += static_cast<double>(mask.size());
  ++record->recordings;
  return Unit{};
}

Status StatsTracker::stat(std::string_view key, std::string_view denominator, std::span<const float> values,
                          Reduction reduction) {
  if (reduction == Reduction::kScalar || values.empty()) {
    return Error{Errc::kInvalid, fmt::format("'{}': a statistic has values, and is no scalar", key)};
  }
  const std::string full = full_key(key);
  const std::string over = full_key(denominator);
  const auto mask_record = std::ranges::find_if(
      records_, [&](const StatRecord& record) { return record.key.key == over && record.key.denominator == over; });
  if (mask_record == records_.end()) return Error{Errc::kInvalid, fmt::format("'{}': no denominator '{}'", full, over)};
  const auto known = std::ranges::find_if(records_, [&](const StatRecord& record) { return record.key.key == full; });
  const std::size_t recording = known == records_.end() ? 0 : known->recordings;
  if (recording >= mask_record->masks.size() || mask_record->masks[recording].size() != values.size()) {
    return Error{Errc::kInvalid, fmt::format("'{}': recording {} does not fit that of '{}'", full, recording, over)};
  }
  const std::vector<std::uint8_t> mask = mask_record->masks[recording];
  StatRecord* record = record_of({.key = full, .reduction = reduction, .denominator = over});
  if (record == nullptr) return Error{Errc::kInvalid, fmt::format("'{}' is recorded as something else", full)};
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (mask[at] != 0) record->partial.add(values[at]);
  }
  ++record->recordings;
  return Unit{};
}

Status StatsTracker::scalar(std::string_view key, double value) {
  StatRecord* record = record_of({.key = full_key(key), .reduction = Reduction::kScalar, .denominator = {}});
  if (record == nullptr) return Error{Errc::kInvalid, fmt::format("'{}' is recorded as something else", key)};
  record->partial.add(value);
  ++record->recordings;
  return Unit{};
}

Status StatsTracker::timing(std::string_view key, double seconds) {
  StatRecord* record =
      record_of({.key = fmt::format("timeperf/{}", key), .reduction = Reduction::kScalar, .denominator = {}});
  if (record == nullptr) return Error{Errc::kInvalid, fmt::format("'{}' is recorded as something else", key)};
  record->partial.add(seconds);
  ++record->recordings;
  return Unit{};
}

Status StatsTracker::reduce_widely(std::string_view key) {
  const std::string full = full_key(key);
  const auto place = std::ranges::find_if(records_, [&](const StatRecord& record) { return record.key.key == full; });
  if (place == records_.end()) return Error{Errc::kInvalid, fmt::format("nothing is recorded under '{}'", full)};
  place->key.wide = true;
  return Unit{};
}

Result<StatRecords> StatsTracker::take(std::string_view exporter) {
  if (exporter != owner_) {
    return Error{Errc::kInvalid, fmt::format("'{}' asks for the statistics of '{}'", exporter, owner_)};
  }
  return std::exchange(records_, {});
}

std::vector<StatKey> stat_keys(const StatRecords& records) {
  std::vector<StatKey> keys;
  keys.reserve(records.size());
  for (const StatRecord& record : records) keys.push_back(record.key);
  return keys;
}

}  // namespace areal::algo
