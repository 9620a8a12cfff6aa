#include "engine/algo/dpo_loss.h"

#include <fmt/format.h>

#include <cmath>

namespace areal::algo {

namespace {

// Whether logprobs[at] of a row counts: it predicts the next token, if there is one.
bool counts(const Rows& rows, std::size_t row, std::size_t at, Mask mask) {
  return at + 1 < rows.end(row) && mask[at + 1] != 0;
}

bool is_valid(std::optional<Mask> valid_pairs, std::size_t pair) { return !valid_pairs || (*valid_pairs)[pair] != 0; }

}  // namespace

Result<PairLogRatios> pair_log_ratios(const Rows& rows, std::span<const float> logprobs,
                                      std::span<const float> reference_logprobs, Mask mask,
                                      std::optional<Mask> valid_pairs) {
  const std::size_t length = rows.elements();
  if (logprobs.size() != length || reference_logprobs.size() != length || mask.size() != length) {
    return Error{Errc::kInvalid, "log-probabilities, mask and sequences differ in length"};
  }
  if (rows.size() % 2 != 0) return Error{Errc::kInvalid, fmt::format("{} sequences make no pairs", rows.size())};
  const std::size_t pairs = rows.size() / 2;
  if (valid_pairs && valid_pairs->size() != pairs) {
    return Error{Errc::kInvalid, fmt::format("{} pairs, but {} flags", pairs, valid_pairs->size())};
  }
  PairLogRatios result;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    if (!is_valid(valid_pairs, pair)) continue;
    Pair policy{};
    Pair reference{};
    Pair tokens{};
    for (std::size_t side = 0; side < 2; ++side) {
      const std::size_t row = 2 * pair + side;
      for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
        if (!counts(rows, row, at, mask)) continue;
        policy[side] += static_cast<double>(logprobs[at]);
        reference[side] += static_cast<double>(reference_logprobs[at]);
        tokens[side] += 1;
      }
    }
    result.policy.push_back(policy);
    result.reference.push_back(reference);
    result.completion_tokens.push_back(tokens);
  }
  return result;
}

std::vector<float> pair_gradient(const Rows& rows, Mask mask, std::optional<Mask> valid_pairs,
                                 std::span<const double> upstream) {
  AREAL_CHECK(mask.size() == rows.elements());
  std::vector<float> gradient(rows.elements(), 0.0F);
  std::size_t valid = 0;
  for (std::size_t pair = 0; pair < rows.size() / 2; ++pair) {
    if (!is_valid(valid_pairs, pair)) continue;
    AREAL_CHECK(valid < upstream.size());
    const float change = static_cast<float>(upstream[valid++]);
    for (std::size_t side = 0; side < 2; ++side) {
      const std::size_t row = 2 * pair + side;
      for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
        if (counts(rows, row, at, mask)) gradient[at] = side == 0 ? change : -change;
      }
    }
  }
  AREAL_CHECK(valid == upstream.size());
  return gradient;
}

std::optional<PreferenceLoss> preference_loss_from(std::string_view name) {
  if (name == "sigmoid") return PreferenceLoss::kSigmoid;
  if (name == "ipo") return PreferenceLoss::kIpo;
  return std::nullopt;
}

PreferenceTerm preference_term(PreferenceLoss loss, double beta, double logit) {
  switch (loss) {
    case PreferenceLoss::kSigmoid: {
      const double x = beta * logit;
      // log1p(exp(-x)) with exp of what is never above 0.
      const double small = std::exp(-std::abs(x));
      const double loss_value = std::log1p(small) + (x < 0 ? -x : 0.0);
      const double sigmoid_of_minus = (x < 0 ? 1.0 : small) / (1 + small);
      return {loss_value, -beta * sigmoid_of_minus};
    }
    case PreferenceLoss::kIpo: {
      const double off = logit - 1 / (2 * beta);
      return {off * off, 2 * off};
    }
  }
  AREAL_CHECK(false);
}

}  // namespace areal::algo
