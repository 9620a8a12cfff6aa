#include "engine/algo/loss_run.h"

#include <fmt/format.h>

namespace areal::algo {

namespace {

std::uint8_t* zeros(std::vector<std::uint8_t>& flags, std::size_t length) {
  flags.assign(length, 0);
  return flags.data();
}

}  // namespace

Status check_clip(double clip) {
  if (clip >= 0) return Unit{};
  return Error{Errc::kInvalid, fmt::format("a clip must be at least 0, not {}", clip)};
}

TokenResults results_of(PolicyLoss& into, std::size_t length, Statistics statistics, bool has_gates) {
  const std::size_t filled = statistics == Statistics::kFill ? length : 0;
  const std::size_t gates = has_gates ? filled : 0;
  TokenStatistics& all = into.statistics;
  TokenResults results;
  results.loss = sized(all.loss, filled);
  results.ratio = sized(all.ratio, filled);
  results.log_ratio = sized(all.log_ratio, filled);
  results.is_clipped = zeros(all.is_clipped, filled);
  results.is_dual_clipped = zeros(all.is_dual_clipped, filled);
  results.gate = sized(all.gate, gates);
  results.gate_of_gain = sized(all.gate_of_gain, gates);
  results.gate_of_loss = sized(all.gate_of_loss, gates);
  all.behaviour.reset();
  if (statistics == Statistics::kLeaveOut) results = {};  // An emptied vector may keep its memory.
  results.gradient = sized(into.gradient, length);
  return results;
}

BehaviourStatistics behaviour_statistics(const PolicyTokens& tokens, Rejection rejection) {
  BehaviourStatistics statistics;
  statistics.log_ratio.resize(tokens.logprobs.size());
  for (std::size_t at = 0; at < statistics.log_ratio.size(); ++at) {
    if (rejection.kept[at] != 0) statistics.log_ratio[at] = tokens.proximal[at] - tokens.old[at];
  }
  statistics.weights = std::move(rejection.weights);
  statistics.kept = std::move(rejection.kept);
  statistics.filtered_fraction = rejection.filtered_fraction;
  return statistics;
}

Result<std::optional<Rejection>> rejection_of(const std::optional<RejectionSettings>& settings,
                                              const PolicyTokens& tokens) {
  if (!settings) return std::optional<Rejection>();
  auto rejection = apply_rejection(*settings, tokens.proximal, tokens.old, tokens.mask, tokens.rows);
  if (!rejection) return std::move(rejection).error();
  return std::optional<Rejection>(std::move(rejection).value());
}

TokenArrays arrays_of(const PolicyTokens& tokens, std::span<const float> base, const Rejection* rejection,
                      double denominator) {
  return {tokens.logprobs.data(),
          base.data(),
          tokens.advantages.data(),
          tokens.mask.data(),
          rejection != nullptr ? rejection->kept.data() : tokens.mask.data(),
          rejection != nullptr ? rejection->weights.data() : nullptr,
          tokens.logprobs.size(),
          static_cast<float>(1 / denominator)};
}

}  // namespace areal::algo
