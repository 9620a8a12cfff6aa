#include "engine/algo/rollout_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::algo {

Result<SubmitBudget> submit_budget(const SubmitState& state) {
  if (state.queue_limit < state.batch) {
    return Error{Errc::kInvalid,
                 fmt::format("a queue of {} is shorter than a batch of {}", state.queue_limit, state.batch)};
  }
  const std::int64_t room =
      std::min(state.pending_limit - state.pending, state.queue_limit - (state.queued + state.batch));
  return SubmitBudget{room, std::max<std::int64_t>(0, std::min(state.batch, room))};
}

Status check_batch_can_fill(const BatchNeeds& needs) {
  std::int64_t under_way = 0;
  const bool is_beyond = __builtin_add_overflow(needs.max_staleness, 1, &under_way) ||
                         __builtin_mul_overflow(under_way, std::max<std::int64_t>(1, needs.consumer_batch), &under_way);
  if (is_beyond ? needs.max_staleness > 0 : under_way >= needs.trainer_batch) return Unit{};
  return Error{Errc::kInvalid, fmt::format("a trainer batch of {} can never be full: (max staleness {} + 1) x consumer "
                                           "batch {} allow {} tasks at one version",
                                           needs.trainer_batch, needs.max_staleness, needs.consumer_batch, under_way)};
}

ResultChoice choose_results(std::span<const TaskResult> results, std::size_t count, bool is_deterministic) {
  std::vector<TaskResult> order(results.begin(), results.end());
  std::ranges::stable_sort(order, [&](const TaskResult& a, const TaskResult& b) {
    return is_deterministic ? a.task < b.task : a.created < b.created;
  });
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  return {{order.begin(), end}, {end, order.end()}};
}

CollectionGuard::State CollectionGuard::round(Instant now, std::int64_t groups) {
  groups_ += groups;
  if (groups_ >= limits_.min_groups) return State::kEnough;
  if (limits_.is_fixed) return State::kTooFew;
  if (groups > 0) {
    empty_rounds_ = 0;
    return State::kCollecting;
  }
  if (empty_rounds_++ == 0) first_empty_ = now;
  const bool is_long = now - first_empty_ >= limits_.stall_timeout;
  return empty_rounds_ >= limits_.max_empty_rounds && is_long ? State::kStalled : State::kCollecting;
}

}  // namespace areal::algo
