#include "engine/algo/gae.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

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

using Floats [[gnu::vector_size(16)]] = float;
using Words [[gnu::vector_size(16)]] = std::uint32_t;

// One row of a call, walked from its end; a turn is written when the one before it begins. Masks of rollouts are hard
// to foresee, so both loops select by them instead of jumping.
class TurnRow {
 public:
  TurnRow(const GaeInput& input, std::span<const std::int32_t> turn_ids, GaeOutput output, std::size_t row)
      : input_(input), turn_ids_(turn_ids), output_(output), row_(row), next_value_(input.bootstrap[row]) {}

  Status run() {
    const std::size_t begin = input_.rows.begin(row_);
    const auto length = static_cast<std::int64_t>(input_.rows.length(row_));
    std::size_t written = input_.rows.end(row_);  // From there on all is done.
    std::size_t first = written;                  // First trained token of the turn under way.
    std::int32_t turn = -1;                       // None yet.
    double reward = 0;
    for (std::size_t at = written; at-- > begin;) {
      const bool is_trained = input_.trained[at] != 0;
      const std::int32_t id = turn_ids_[at];
      if (is_trained & (id != turn)) [[unlikely]] {
        if (id < 0 || id >= length || (turn >= 0 && id > turn)) return refusal(id, length);
        if (turn >= 0) written = finish(first, written, reward);
        turn = id;
        reward = 0;
      }
      first = is_trained ? at : first;
      reward += static_cast<double>(is_trained ? input_.rewards[at] : 0.0F);  // + 0 changes no sum that began with 0.
    }
    if (turn >= 0) written = finish(first, written, reward);
    fill(begin, written, 0, 0);
    return Unit{};
  }

 private:
  static Error refusal(std::int32_t id, std::int64_t length) {
    if (id < 0) return {Errc::kInvalid, "turn_ids must be non-negative at every active loss token"};
    if (id >= length) {
      return {Errc::kInvalid, "turn_ids at active loss tokens must be smaller than the sequence length"};
    }
    return {Errc::kInvalid, "turn_ids at active loss tokens must be temporally nondecreasing"};
  }

  // The turn that begins at `first`, and what is not trained behind it up to `end`.
  std::size_t finish(std::size_t first, std::size_t end, double reward) {
    const float value = input_.values[first];
    const float delta = static_cast<float>(reward) + input_.discount * next_value_ - value;
    advantage_ = delta + input_.decay[row_] * advantage_;
    next_value_ = value;
    fill(first, end, advantage_, advantage_ + value);
    return first;
  }

  void fill(std::size_t begin, std::size_t end, float advantage, float trained_return) {
    std::size_t at = begin;
    for (; at + 4 <= end; at += 4) {
      std::uint32_t mask = 0;
      Floats values;
      std::memcpy(&mask, &input_.trained[at], 4);
      std::memcpy(&values, &input_.values[at], 16);
      const auto is_trained = (Words{mask, mask, mask, mask} & kBytes) != 0U;
      const Floats advantages = is_trained ? Floats{} + advantage : Floats{};
      const Floats returns = is_trained ? Floats{} + trained_return : values;
      std::memcpy(&output_.advantages[at], &advantages, 16);
      std::memcpy(&output_.returns[at], &returns, 16);
    }
    for (; at < end; ++at) {
      const bool is_trained = input_.trained[at] != 0;
      output_.advantages[at] = is_trained ? advantage : 0.0F;
      output_.returns[at] = is_trained ? trained_return : input_.values[at];
    }
  }

  static_assert(std::endian::native == std::endian::little, "the masks of four elements are read as one word");
  static constexpr Words kBytes = {0xFF, 0xFF00, 0xFF0000, 0xFF000000};

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
