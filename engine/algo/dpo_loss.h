// Direct preference optimization: log-probabilities of pairs of completions, and the loss on their difference.
//
// Sequences lie in pairs, chosen then rejected. A sequence's log-probability is the sum over tokens t < last whose
// successor t + 1 the mask keeps: logprobs[t] predicts that one. logits = (chosen - rejected) of the policy minus that
// of the reference. sigmoid: -log sigmoid(beta x), arXiv 2305.18290; ipo: (x - 1 / (2 beta))^2, 2310.12036. Sums and
// losses in double. Masked tokens are not read: a NaN or an infinity there changes nothing, where the reference
// multiplies it by 0. Pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"
#include "engine/base/result.h"

namespace areal::algo {

// Chosen and rejected.
using Pair = std::array<double, 2>;

// One entry for each valid pair, in order; nats, and tokens.
struct PairLogRatios {
  std::vector<Pair> policy;
  std::vector<Pair> reference;
  std::vector<Pair> completion_tokens;
};

// Spans of rows.elements(); `valid_pairs` none: all. kInvalid: lengths differ; an odd number of sequences; another
// number of pairs than `valid_pairs` has.
Result<PairLogRatios> pair_log_ratios(const Rows& rows, std::span<const float> logprobs,
                                      std::span<const float> reference_logprobs, Mask mask,
                                      std::optional<Mask> valid_pairs);

// d sum over valid pairs of upstream[pair] * (chosen - rejected) / d logprobs. REQUIRES: inputs that pair_log_ratios()
// accepts, and as many entries of `upstream` as it gave pairs.
std::vector<float> pair_gradient(const Rows& rows, Mask mask, std::optional<Mask> valid_pairs,
                                 std::span<const double> upstream);

enum class PreferenceLoss : std::uint8_t { kSigmoid, kIpo };

std::optional<PreferenceLoss> preference_loss_from(std::string_view name);  // "sigmoid", "ipo"

// Of each pair's difference of log-ratios.
struct PreferenceTerm {
  double loss = 0;
  double slope = 0;  // d loss / d logit
};

PreferenceTerm preference_term(PreferenceLoss loss, double beta, double logit);

}  // namespace areal::algo
