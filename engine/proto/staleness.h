// How many more rollout tasks may start, so that samples do not get too old; and the counters behind it.
//
// capacity = min(max(1, concurrent) - running, (staleness + version + 1) * max(1, batch) - (accepted + running)); it
// may be negative. pending_limit = (staleness + 1) * batch, with the batch as given. accepted counts since the start
// and falls only in a recovery; a rejection gives its slot back. Nothing guards the counters: accept without submit
// makes running -1. A recovery to version v sets accepted to v * max(1, batch), so that the first capacity is that of a
// fresh start.
//
// What this bounds is the head of the queue, right after every submit; a long task is still consumed late.
// Values; the loop that owns them is the only writer. Unit: tasks.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/base/fields.h"

namespace areal::proto {

struct StalenessLimits {
  std::int64_t max_concurrent = 0;  // 0 and less count as 1.
  std::int64_t batch = 0;           // Tasks one training step consumes.
  std::int64_t max_staleness = 0;   // Versions.
  AREAL_FIELDS(max_concurrent, batch, max_staleness)
};

struct StalenessCounters {
  std::int64_t enqueued = 0;
  std::int64_t running = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  AREAL_FIELDS(enqueued, running, accepted, rejected)
};

constexpr std::int64_t pending_limit(const StalenessLimits& limits) {
  return (limits.max_staleness + 1) * limits.batch;
}

constexpr std::int64_t capacity(const StalenessLimits& limits, const StalenessCounters& counters,
                                std::int64_t version) {
  const std::int64_t by_slots = std::max<std::int64_t>(1, limits.max_concurrent) - counters.running;
  const std::int64_t by_age = (limits.max_staleness + version + 1) * std::max<std::int64_t>(1, limits.batch) -
                              (counters.accepted + counters.running);
  return std::min(by_slots, by_age);
}

// What counts as accepted when a run goes on from `version`. A policy: the product's answer is that of a run that made
// that version without a loss.
using RecoveredCount = std::int64_t (*)(std::int64_t version, const StalenessLimits& limits);
constexpr std::int64_t as_if_never_lost(std::int64_t version, const StalenessLimits& limits) {
  return version * std::max<std::int64_t>(1, limits.batch);
}

// The limits of one of `ranks` data-parallel dispatchers that share a budget: divided, rounded down, at least 1.
constexpr StalenessLimits share_of(const StalenessLimits& limits, std::int64_t ranks) {
  return {std::max<std::int64_t>(1, limits.max_concurrent / ranks), std::max<std::int64_t>(1, limits.batch / ranks),
          limits.max_staleness};
}

class StalenessManager {
 public:
  StalenessManager() = default;
  explicit StalenessManager(const StalenessLimits& limits) : limits_(limits) {}

  void enqueue() { ++counters_.enqueued; }
  void submit() { --counters_.enqueued, ++counters_.running; }
  void accept() { --counters_.running, ++counters_.accepted; }
  void reject() { --counters_.running, ++counters_.rejected; }
  void set_version(std::int64_t version) { version_ = version; }
  void recover(std::int64_t version, RecoveredCount accepted = as_if_never_lost) {
    version_ = version;
    counters_.accepted = accepted(version, limits_);
  }

  [[nodiscard]] std::int64_t capacity() const { return proto::capacity(limits_, counters_, version_); }
  [[nodiscard]] std::int64_t pending_limit() const { return proto::pending_limit(limits_); }
  [[nodiscard]] const StalenessCounters& counters() const { return counters_; }
  [[nodiscard]] const StalenessLimits& limits() const { return limits_; }
  [[nodiscard]] std::int64_t version() const { return version_; }

  AREAL_FIELDS(limits_, counters_, version_)

 private:
  StalenessLimits limits_;
  StalenessCounters counters_;
  std::int64_t version_ = 0;
};

}  // namespace areal::proto
