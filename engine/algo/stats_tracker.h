// Records numbers of a training step under keys, in many processes, and brings them together as one list.
//
// Reductions, over all recordings of all ranks, of the values v where the recording's mask d is set:
//   average sum(v) / sum(d)   sum, minimum, maximum   average-minimum-maximum: "key/avg", "key/min", "key/max"
//   scalar: mean of the recordings, and "key__count", how many there were
// A key with nothing under its mask, or whose minimum or maximum is infinite, is left out. A scalar that no rank
// recorded is 0 with count 0. A NaN makes its key's average, minimum and maximum one. Values outside a mask are not
// read. float32 in, double inside, ranks in order.
//
// Ranks must ask for the same collectives in the same order, whatever each of them recorded: first all exchange
// stat_keys(), each merges them, and the collectives follow from the merged list alone. A tracker belongs to one owner,
// and only it may take the records: of two exporters in a process the first would take what the second recorded.
// Not safe to share between threads. Source: the statistics tracker of AReaL.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/base/result.h"

namespace areal::algo {

enum class Reduction : std::uint8_t { kAverage, kSum, kMinimum, kMaximum, kAverageMinMax, kScalar };
constexpr std::array<std::string_view, 6> enum_names(Reduction /*tag*/) {
  return {"avg", "sum", "min", "max", "avg_min_max", "scalar"};
}

// What is known of a key without its numbers. `wide`: it is reduced over a group of its own, wider than the usual one.
struct StatKey {
  std::string key;
  Reduction reduction = Reduction::kScalar;
  std::string denominator;  // Its key; empty: none.
  bool wide = false;
  bool operator==(const StatKey&) const = default;
};

// Of one key, on one rank or on several; a value-initialised one is what a rank adds that recorded nothing.
struct StatPartial {
  double sum = 0;
  double count = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  void add(double value);
  void merge(const StatPartial& other);
};

struct StatRecord {
  StatKey key;
  StatPartial partial;
  std::vector<std::vector<std::uint8_t>> masks;  // Of a denominator: one for each recording.
  std::size_t recordings = 0;
};

// Sorted by key.
using StatRecords = std::vector<StatRecord>;
using Stats = std::vector<std::pair<std::string, double>>;

class StatsTracker {
 public:
  // `name`: stands before every key; may be empty.
  explicit StatsTracker(std::string_view owner, std::string_view name = "") : owner_(owner), name_(name) {}

  // Keys recorded until the next leave() get "scope/" in front. REQUIRES for leave(): a scope was entered.
  void enter(std::string_view scope) { scopes_.emplace_back(scope); }
  void leave();

  // A mask by which values are averaged; exported as the number of entries that it keeps. kInvalid: it is empty, or the
  // key is another kind's.
  Status denominator(std::string_view key, Mask mask);
  // The i-th recording of a key belongs to the i-th of its denominator, which is of the same scope. kInvalid: no
  // values; no such recording, or one of another length; kScalar; another reduction or denominator than before.
  Status stat(std::string_view key, std::string_view denominator, std::span<const float> values,
              Reduction reduction = Reduction::kAverageMinMax);
  Status scalar(std::string_view key, double value);
  // Always under "timeperf/", whatever the scope.
  Status timing(std::string_view key, double seconds);
  // The key's collectives go over its own, wider group. kInvalid: nothing was recorded under it.
  Status reduce_widely(std::string_view key);

  // What was recorded since the last taking. kInvalid: `exporter` is not the owner.
  Result<StatRecords> take(std::string_view exporter);

 private:
  [[nodiscard]] std::string full_key(std::string_view key) const;
  // The key's record, new if need be; null if the key is another kind's.
  StatRecord* record_of(const StatKey& key);

  std::string owner_;
  std::string name_;
  std::vector<std::string> scopes_;
  StatRecords records_;
};

std::vector<StatKey> stat_keys(const StatRecords& records);

// What one rank brings to the merging.
struct RankKeys {
  std::vector<StatKey> keys;
  bool knows_wide_group = false;  // It can take part in the wider group's collectives without recording the key.
};

// All keys of all ranks, sorted; `wide` where one rank says so. kInvalid: two ranks record one key differently;
// kUnsupported: a key is reduced widely and a rank that lacks it does not know the group.
Result<std::vector<StatKey>> merge_stat_keys(std::span<const RankKeys> ranks);

enum class StatCollectiveKind : std::uint8_t { kSum, kMinimum, kMaximum };
struct StatCollective {
  std::string key;
  StatCollectiveKind kind = StatCollectiveKind::kSum;
  bool wide = false;
  bool operator==(const StatCollective&) const = default;
};

// What every rank asks for, in order: of an average its sum and its count.
std::vector<StatCollective> stat_collectives(std::span<const StatKey> merged);

// The export, sorted as `merged` is.
Stats reduce_stats(std::span<const StatKey> merged, std::span<const StatRecords> ranks);

// Exports of several trackers of one process as one; of a repeated key the last one's value counts, and `repeated`
// lists it.
struct JoinedStats {
  Stats stats;
  std::vector<std::string> repeated;
};
JoinedStats join_stats(std::span<const Stats> exports);

// Exports of several workers: means weighted by "key__count"; a worker that has none counts once. Counts are left out,
// and so is a key that nobody counted.
Stats average_workers(std::span<const Stats> workers);

}  // namespace areal::algo
