#include "engine/algo/trajectory_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/algo/padding.h"
#include "engine/base/check.h"

namespace areal::algo {

namespace {

void append_unmade(TrajectoryRow& row, std::span<const std::int32_t> tokens) {
  row.input_ids.insert(row.input_ids.end(), tokens.begin(), tokens.end());
  row.logprobs.resize(row.input_ids.size(), 0.0F);
  row.loss_mask.resize(row.input_ids.size(), 0);
  row.versions.resize(row.input_ids.size(), kNoVersion);
  row.turn_ids.resize(row.input_ids.size(), kNoTurn);
  row.attention_mask.resize(row.input_ids.size(), 1);
}

void append_output(TrajectoryRow& row, const Generation& generation, std::int32_t turn) {
  row.input_ids.insert(row.input_ids.end(), generation.output_tokens.begin(), generation.output_tokens.end());
  row.logprobs.insert(row.logprobs.end(), generation.output_logprobs.begin(), generation.output_logprobs.end());
  row.versions.insert(row.versions.end(), generation.output_versions.begin(), generation.output_versions.end());
  row.loss_mask.resize(row.input_ids.size(), 1);
  row.turn_ids.resize(row.input_ids.size(), turn);
  row.attention_mask.resize(row.input_ids.size(), 1);
}

Status check(const Generation& generation) {
  const std::size_t made = generation.output_tokens.size();
  if (generation.output_logprobs.size() != made || generation.output_versions.size() != made) {
    return Error{Errc::kInvalid, fmt::format("{} tokens with {} log-probabilities and {} versions", made,
                                             generation.output_logprobs.size(), generation.output_versions.size())};
  }
  if (generation.input_tokens.empty()) return Error{Errc::kInvalid, "a row needs a prompt of at least one token"};
  return Unit{};
}

}  // namespace

Result<TrajectoryRow> trajectory_row(const Generation& generation) {
  AREAL_TRY(check(generation));
  TrajectoryRow row;
  append_unmade(row, generation.input_tokens);
  append_output(row, generation, 0);
  return row;
}

Result<ChildRow> child_row(const TrajectoryRow& parent, const Generation& generation) {
  AREAL_TRY(check(generation));
  const std::span<const std::int32_t> input = generation.input_tokens;
  if (input.size() <= parent.input_ids.size()) {
    auto alone = trajectory_row(generation);
    if (!alone) return std::move(alone).error();
    return ChildRow{std::move(alone).value(), false};
  }
  if (!std::ranges::equal(input.first(parent.input_ids.size()), parent.input_ids)) {
    return Error{Errc::kInvalid, "the input does not begin with the parent's tokens"};
  }
  const std::int32_t last_turn = parent.turn_ids.empty() ? kNoTurn : std::ranges::max(parent.turn_ids);
  ChildRow child{parent, true};
  append_unmade(child.row, input.subspan(parent.input_ids.size()));
  append_output(child.row, generation, std::max(last_turn, kNoTurn) + 1);
  return child;
}

void pad_row(TrajectoryRow& row, std::size_t width) {
  AREAL_CHECK(row.input_ids.size() <= width);
  row.input_ids.resize(width, 0);
  row.logprobs.resize(width, 0.0F);
  row.loss_mask.resize(width, 0);
  row.versions.resize(width, kNoVersion);
  row.turn_ids.resize(width, kNoTurn);
  row.attention_mask.resize(width, 0);
}

}  // namespace areal::algo
