#include "engine/algo/time_steps.h"

namespace areal::algo {

namespace {

std::int64_t turns_of(const Rows& rows, std::size_t row, Mask trained, const std::vector<std::int32_t>& turn_ids) {
  std::int64_t turns = 0;
  std::optional<std::int32_t> before;
  for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
    if (trained[at] == 0) continue;
    if (before != turn_ids[at]) ++turns;
    before = turn_ids[at];
  }
  return turns;
}

}  // namespace

std::optional<TimeStep> time_step_from(std::string_view name) {
  if (name == "token") return TimeStep::kToken;
  if (name == "turn") return TimeStep::kTurn;
  return std::nullopt;
}

Result<TimeSteps> time_steps(TimeStep unit, const Rows& rows, Mask trained, const std::vector<std::int32_t>* turn_ids) {
  AREAL_CHECK(trained.size() == rows.elements());
  if (unit == TimeStep::kTurn && turn_ids == nullptr) {
    return Error{Errc::kInvalid, "time steps in turns need the turn_ids of the rollout"};
  }
  if (turn_ids != nullptr && turn_ids->size() != rows.elements()) {
    return Error{Errc::kInvalid, "turn_ids of another shape than the mask"};
  }
  TimeSteps steps{unit, {}, {}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    steps.tokens.push_back(static_cast<std::int64_t>(count(rows.of(trained, row))));
    steps.turns.push_back(turn_ids == nullptr ? 0 : turns_of(rows, row, trained, *turn_ids));
  }
  return steps;
}

}  // namespace areal::algo
