#include "engine/algo/gae.h"

#include <fmt/format.h>

namespace areal::algo {

std::vector<float> decays(double discount, double lambda, std::size_t rows) {
  return std::vector<float>(rows, static_cast<float>(discount * lambda));
}

std::vector<float> decays(double discount, std::span<const float> lambda) {
  std::vector<float> decay;
  decay.reserve(lambda.size());
  for (const float value : lambda) decay.push_back(static_cast<float>(discount) * value);
  return decay;
}

Result<std::vector<float>> bootstraps(const Rows& rows, std::span<const float> values, Mask is_cut_off) {
  AREAL_CHECK(is_cut_off.size() == rows.size());
  AREAL_CHECK(values.size() == rows.elements());
  std::vector<float> bootstrap(rows.size(), 0.0F);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows.length(row) == 0) return Error{Errc::kInvalid, fmt::format("row {} has no last value", row)};
    if (is_cut_off[row] != 0) bootstrap[row] = values[rows.end(row) - 1];
  }
  return bootstrap;
}

namespace {

constexpr std::size_t kNoToken = static_cast<std::size_t>(-1);

// One row of a call, walked from its end.
class TurnRow {
 public:
  TurnRow(const GaeInput& input, std::span<const std::int32_t> turn_ids, GaeOutput output, std::size_t row)
      : input_(input), turn_ids_(turn_ids), output_(output), row_(row), next_value_(input.bootstrap[row]) {}

  Status run() {
    std::size_t first = kNoToken;  // Of the turn under way.
    std::size_t last = kNoToken;
    for (std::size_t at = input_.rows.end(row_); at-- > input_.rows.begin(row_);) {
      output_.advantages[at] = 0;
      output_.returns[at] = input_.values[at];
      if (input_.trained[at] == 0) continue;
      AREAL_TRY(check(at, first));
      if (first != kNoToken && turn_ids_[at] != turn_ids_[first]) {
        finish(first, last);
        last = at;
      }
      if (last == kNoToken) last = at;
      first = at;
    }
    if (first != kNoToken) finish(first, last);
    return Unit{};
  }

 private:
  [[nodiscard]] Status check(std::size_t at, std::size_t later) const {
    const std::int32_t id = turn_ids_[at];
    if (id < 0) return Error{Errc::kInvalid, "turn_ids must be non-negative at every active loss token"};
    if (static_cast<std::size_t>(id) >= input_.rows.length(row_)) {
      return Error{Errc::kInvalid, "turn_ids at active loss tokens must be smaller than the sequence length"};
    }
    if (later != kNoToken && id > turn_ids_[later]) {
      return Error{Errc::kInvalid, "turn_ids at active loss tokens must be temporally nondecreasing"};
    }
    return Unit{};
  }

  // The turn whose trained tokens lie in [first, last].
  void finish(std::size_t first, std::size_t last) {
    const std::size_t count = last - first + 1;
    const auto reward =
        static_cast<float>(masked_sum(input_.rewards.subspan(first, count), input_.trained.subspan(first, count)));
    const float value = input_.values[first];
    const float delta = reward + input_.discount * next_value_ - value;
    advantage_ = delta + input_.decay[row_] * advantage_;
    next_value_ = value;
    for (std::size_t at = first; at <= last; ++at) {
      if (input_.trained[at] == 0) continue;
      output_.advantages[at] = advantage_;
      output_.returns[at] = advantage_ + value;
    }
  }

  const GaeInput& input_;
  std::span<const std::int32_t> turn_ids_;
  GaeOutput output_;
  std::size_t row_;
  float next_value_;
  float advantage_ = 0;
};

}  // namespace

Status gae_by_turn(const GaeInput& input, std::span<const std::int32_t> turn_ids, GaeOutput output) {
  if (turn_ids.size() != input.rows.elements()) {
    return Error{Errc::kInvalid,
                 fmt::format("turn_ids must have {} elements, got {}", input.rows.elements(), turn_ids.size())};
  }
  for (std::size_t row = 0; row < input.rows.size(); ++row) {
    AREAL_TRY(TurnRow(input, turn_ids, output, row).run());
  }
  return Unit{};
}

}  // namespace areal::algo
