#include "engine/node/tiny_decode.h"

#include <algorithm>

#include "engine/base/rng.h"

namespace areal::node {
namespace {

constexpr std::uint64_t kLeastTokens = 32;
// Share of sample groups whose rewards are all equal, and which are rejected.
constexpr std::uint64_t kRejectOneIn = 16;
constexpr std::uint64_t kLengthSalt = 0x6C656E;
constexpr std::uint64_t kRewardSalt = 0x726577;

}  // namespace

std::uint64_t tokens_of_sample(const config::RolloutSettings& rollout, std::uint64_t run_seed,
                               const port::StartCompute& asked) {
  const std::uint64_t most = rollout.max_new_tokens;
  const std::uint64_t least = std::min(kLeastTokens, most);
  const std::uint64_t word = mix_words(mix_words(run_seed, kLengthSalt), asked.seed);
  const std::uint64_t length = least + word % (most - least + 1);
  const std::uint64_t made = most - std::min(most, asked.amount);  // By earlier segments.
  return length > made ? length - made : 1;
}

bool rewards_differ(std::uint64_t run_seed, std::uint64_t sample_group) {
  return mix_words(mix_words(run_seed, kRewardSalt), sample_group) % kRejectOneIn != 0;
}

}  // namespace areal::node
