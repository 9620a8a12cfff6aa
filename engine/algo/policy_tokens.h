// What the policy losses read and give: one value for each token, flat, row after row.
//
// A loss is the sum over kept tokens divided by max(1, tokens of the mask passed in); filtering tokens never changes
// that divisor. Losses are sums in double over tokens in their order, rounded to fp32 at the end: equal for every
// padding and instruction set. Values, log-probabilities in nats. Masked tokens may hold anything, NaN included: they
// reach no loss and no gradient, only their own entry of statistics that the reference does not mask either.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"
#include "engine/base/result.h"

namespace areal::algo {

// Spans of one length, [tokens].
struct PolicyTokens {
  std::span<const float> logprobs;  // Of the policy that is trained.
  std::span<const float> proximal;  // Of the policy that the ratio is taken to.
  std::span<const float> old;       // Of the policy that sampled; empty where nothing asks for it.
  std::span<const float> advantages;
  Mask mask;
  const Rows* rows = nullptr;  // Where sequences lie; null: packed, and nobody said.
};

// kSequence: one ratio for a sequence, exp of the mean log-ratio of its kept tokens (GSPO, arXiv 2507.18071).
enum class RatioLevel : std::uint8_t { kToken, kSequence };

std::optional<RatioLevel> ratio_level_from(std::string_view name);  // "token", "sequence"

// What rejection sampling made of the tokens.
struct BehaviourStatistics {
  std::vector<float> log_ratio;  // proximal - old where kept, else 0; not finite where the inputs are not.
  std::vector<float> weights;    // Importance weights of the proximal against the sampling policy; 0 where not kept.
  std::vector<std::uint8_t> kept;
  double filtered_fraction = 0;
};

// One entry a token. Empty vectors: the loss has no such thing.
struct TokenStatistics {
  std::vector<float> loss;       // Before the mask.
  std::vector<float> ratio;      // PPO: 0 where masked. Sequences: 0 where not kept. Else of every token.
  std::vector<float> log_ratio;  // logprobs - proximal (SAPO: - old), of every token.
  std::vector<std::uint8_t> is_clipped;
  std::vector<std::uint8_t> is_dual_clipped;
  std::vector<float> gate;  // SAPO: the one used, and both.
  std::vector<float> gate_of_gain;
  std::vector<float> gate_of_loss;
  std::optional<BehaviourStatistics> behaviour;
};

struct TokenCounts {
  double total = 0;
  double valid = 0;
  double masked = 0;
  double masked_ratio = 0;  // 1 - valid / max(1, total)
};

TokenCounts token_counts(Mask mask);

struct PolicyLoss {
  float loss = 0;
  std::vector<float> gradient;  // d loss / d logprobs
  TokenStatistics statistics;   // Filled only where asked for.
};

// Whether to fill PolicyLoss::statistics: they double the memory that a loss writes.
enum class Statistics : std::uint8_t { kLeaveOut, kFill };

// kInvalid unless all spans that are given have one length and the rows, if given, that many tokens.
Status check_shapes(const PolicyTokens& tokens);

}  // namespace areal::algo
