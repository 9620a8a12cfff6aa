// How many time steps each sequence has: trained tokens, or turns.
//
// Pure functions; counts are of aligned masks and ids. Source: spec 4.4.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"
#include "engine/base/result.h"

namespace areal::algo {

enum class TimeStep : std::uint8_t { kToken, kTurn };

std::optional<TimeStep> time_step_from(std::string_view name);  // "token", "turn"

// One entry for each row.
struct TimeSteps {
  TimeStep unit = TimeStep::kToken;
  std::vector<std::int64_t> tokens;  // Trained ones.
  std::vector<std::int64_t> turns;   // With a trained token; 0 without turn ids.
  [[nodiscard]] const std::vector<std::int64_t>& lengths() const { return unit == TimeStep::kTurn ? turns : tokens; }
};

// `turn_ids`: one for each element, or null. A turn counts where the id of a trained token is not that of the trained
// token before. kInvalid: turns without ids, another number of ids. REQUIRES: a mask entry for each element.
Result<TimeSteps> time_steps(TimeStep unit, const Rows& rows, Mask trained, const std::vector<std::int32_t>* turn_ids);

}  // namespace areal::algo
