// When a batch may take more inputs, which results it takes, and when it gives up.
//
// Pure functions and values; times come from the caller. What bounds the head of the queue is engine/proto/staleness.h.
// Source: spec 1.1, 2.3, 2.4, 2.8.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/time.h"

namespace areal::algo {

// One turn of collecting a batch. Units: inputs.
struct SubmitState {
  std::int64_t pending_limit = 0;
  std::int64_t pending = 0;      // Inputs that wait to be started.
  std::int64_t queue_limit = 0;  // Of the runner's input queue.
  std::int64_t queued = 0;       // In it.
  std::int64_t batch = 0;
};

struct SubmitBudget {
  std::int64_t room = 0;     // min(pending_limit - pending, queue_limit - (queued + batch)); may be negative.
  std::int64_t submits = 0;  // min(batch, room), at least 0.
};

// kInvalid: the queue is shorter than a batch.
Result<SubmitBudget> submit_budget(const SubmitState& state);

// Whether a batch of fixed size can ever be full: all that may be under way at one version must be one batch at least.
// kInvalid: (max_staleness + 1) * max(1, consumer_batch) < trainer_batch.
struct BatchNeeds {
  std::int64_t consumer_batch = 1;
  std::int64_t trainer_batch = 1;
  std::int64_t max_staleness = 0;
};
Status check_batch_can_fill(const BatchNeeds& needs);

struct TaskResult {
  std::int64_t task = 0;
  std::int64_t created = 0;  // Nanoseconds.
};

// The `count` results that come first by task number (deterministic), else by time of creation, and the others, both in
// that order. Equal times keep their places. The caller shuffles the taken ones unless it is deterministic.
struct ResultChoice {
  std::vector<TaskResult> taken;
  std::vector<TaskResult> left;
};
ResultChoice choose_results(std::span<const TaskResult> results, std::size_t count, bool is_deterministic);

// Collects groups until there are enough, and gives up only when rounds without one are both many and long: after
// max_empty_rounds of them in a row that span at least stall_timeout.
class CollectionGuard {
 public:
  struct Limits {
    std::int64_t min_groups = 1;
    std::int64_t max_empty_rounds = 8;
    Duration stall_timeout = 1800_s;
    bool is_fixed = false;  // A batch of fixed size is collected in one round.
  };
  enum class State : std::uint8_t { kCollecting, kEnough, kTooFew, kStalled };

  explicit CollectionGuard(const Limits& limits) : limits_(limits) {}

  // A round that ended at `now` with `groups` more.
  State round(Instant now, std::int64_t groups);

  [[nodiscard]] std::int64_t groups() const { return groups_; }
  [[nodiscard]] std::int64_t empty_rounds() const { return empty_rounds_; }

 private:
  Limits limits_;
  std::int64_t groups_ = 0;
  std::int64_t empty_rounds_ = 0;
  Instant first_empty_;
};

}  // namespace areal::algo
