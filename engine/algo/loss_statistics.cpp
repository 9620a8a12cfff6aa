#include "engine/algo/loss_statistics.h"

#include <fmt/format.h>

#include <utility>

#include "engine/algo/logp_drift.h"

namespace areal::algo {

namespace {

std::vector<float> as_floats(std::span<const std::uint8_t> flags) { return {flags.begin(), flags.end()}; }

void add_count(std::string name, std::size_t value, LossStatistics& into) {
  into.counts.push_back({std::move(name), static_cast<double>(value)});
}

void add_scalar(std::string name, double value, LossStatistics& into) {
  into.scalars.push_back({std::move(name), value});
}

void add_behaviour(const BehaviourStatistics& behaviour, Mask mask, LossStatistics& into) {
  const Mask kept(behaviour.kept);
  add_count("unclipped_behave_tokens", count(kept), into);
  add_summary("behave_imp_weight", behaviour.weights, kept, into);
  add_summary("behave_approx_kl", behaviour.log_ratio, kept, into);
  std::vector<float> filtered(mask.size());
  for (std::size_t at = 0; at < mask.size(); ++at) filtered[at] = mask[at] != 0 && kept[at] == 0 ? 1.0F : 0.0F;
  add_summary("behave_filtered_ratio", filtered, mask, into);
  add_scalar("rs_filtered_fraction", behaviour.filtered_fraction, into);
}

void add_gates(const TokenStatistics& statistics, Mask mask, LossStatistics& into) {
  add_summary("sapo_soft_gate", statistics.gate, mask, into);
  add_summary("sapo_scaled_gate_pos", statistics.gate_of_gain, mask, into);
  add_summary("sapo_scaled_gate_neg", statistics.gate_of_loss, mask, into);
}

void add_token_counts(Mask mask, LossStatistics& into) {
  const TokenCounts counts = token_counts(mask);
  add_scalar("n_total_tokens", counts.total, into);
  add_scalar("n_valid_tokens_in_loss", counts.valid, into);
  add_scalar("n_masked_tokens", counts.masked, into);
  add_scalar("masked_token_ratio", counts.masked_ratio, into);
}

std::string_view name_of(ProximalApproximation how) {
  switch (how) {
    case ProximalApproximation::kLoglinear:
      return "loglinear";
    case ProximalApproximation::kLinear:
      return "linear";
    case ProximalApproximation::kRollout:
      return "rollout";
  }
  AREAL_CHECK(false);
}

void add_errors(std::string_view prefix, std::span<const float> truth, std::span<const float> approximation, Mask mask,
                LossStatistics& into) {
  const ApproximationErrors errors = approximation_errors(truth, approximation);
  add_summary(fmt::format("{}abs_error", prefix), errors.absolute, mask, into);
  add_summary(fmt::format("{}rel_error", prefix), errors.relative, mask, into);
  add_summary(fmt::format("{}squared_error", prefix), errors.squared, mask, into);
}

void add_approximation(ProximalApproximation how, const ProximalSources& sources, Mask mask, LossStatistics& into) {
  const auto approximated =
      approximate_proximal(how, sources.old, sources.logprobs, *sources.versions, *sources.current_version);
  const auto behaviour = importance_weights(approximated, sources.old);
  const auto importance = importance_weights(sources.logprobs, approximated);
  const std::string prefix = fmt::format("{}/", name_of(how));
  add_summary(prefix + "approx_logp", approximated, mask, into);
  add_summary(prefix + "behave_imp_weight", behaviour, mask, into);
  add_summary(prefix + "importance_weight", importance, mask, into);
  if (!sources.recomputed) return;
  const std::span<const float> truth = *sources.recomputed;
  add_errors(prefix, truth, approximated, mask, into);
  add_errors(prefix + "behave_imp_weight_", importance_weights(truth, sources.old), behaviour, mask, into);
  add_errors(prefix + "importance_weight_", importance_weights(sources.logprobs, truth), importance, mask, into);
}

}  // namespace

void add_summary(std::string name, std::span<const float> values, Mask mask, LossStatistics& into) {
  AREAL_CHECK(values.size() == mask.size());
  std::vector<double> kept;
  for (std::size_t at = 0; at < mask.size(); ++at) {
    if (mask[at] != 0) kept.push_back(static_cast<double>(values[at]));
  }
  if (kept.empty()) return;
  into.summaries.push_back({std::move(name), summary_of(kept).value(), kept.size()});
}

LossStatistics loss_statistics(const PolicyTokens& tokens, const PolicyLoss& loss, std::span<const float> entropy) {
  const TokenStatistics& of = loss.statistics;
  const Mask mask = tokens.mask;
  LossStatistics result;
  add_count("n_tokens", mask.size(), result);
  add_count("n_valid_tokens", count(mask), result);
  add_count("clipped_tokens", count(of.is_clipped), result);
  add_count("dual_clipped_tokens", count(of.is_dual_clipped), result);
  add_summary("importance_weight", of.ratio, mask, result);
  add_summary("approx_kl", of.log_ratio, mask, result);
  add_summary("new_logp", tokens.logprobs, mask, result);
  if (!tokens.old.empty()) {
    add_summary("old_logp", tokens.old, mask, result);
    const LogpDrift drift = logp_drift(tokens.old, tokens.logprobs, mask);
    add_summary("logp_diff", drift.difference, mask, result);
    add_summary("logp_abs_diff", drift.absolute, mask, result);
    add_summary("clipped_old_logp", tokens.old, of.is_clipped, result);
  }
  if (!entropy.empty()) add_summary("entropy", entropy, mask, result);
  add_summary("actor_loss", of.loss, mask, result);
  add_summary("clip_ratio", as_floats(of.is_clipped), mask, result);
  add_summary("dual_clip_ratio", as_floats(of.is_dual_clipped), mask, result);
  add_summary("clipped_new_logp", tokens.logprobs, of.is_clipped, result);
  add_token_counts(mask, result);
  if (of.behaviour) add_behaviour(*of.behaviour, mask, result);
  if (!of.gate.empty()) add_gates(of, mask, result);
  return result;
}

void add_approximation_statistics(ProximalMethod method, const ProximalSources& sources, Mask mask,
                                  LossStatistics& into) {
  if (method == ProximalMethod::kReuseTrainLogp) return;
  if (method == ProximalMethod::kRecompute || method == ProximalMethod::kMetrics) {
    if (sources.recomputed) add_summary("recompute/prox_logp", *sources.recomputed, mask, into);
  }
  if (method == ProximalMethod::kRecompute || !sources.versions || !sources.current_version) return;
  add_approximation(ProximalApproximation::kLoglinear, sources, mask, into);
  if (method != ProximalMethod::kMetrics) return;
  add_approximation(ProximalApproximation::kLinear, sources, mask, into);
  add_approximation(ProximalApproximation::kRollout, sources, mask, into);
}

void add_staleness(std::span<const std::int64_t> versions, Mask kept, std::int64_t current_version,
                   LossStatistics& into) {
  const auto staleness = version_staleness(versions, kept, current_version);
  if (!staleness) return;
  const auto add = [&](const char* of, const Summary& summary) {
    add_scalar(fmt::format("sample_staleness_{}_avg", of), summary.average, into);
    add_scalar(fmt::format("sample_staleness_{}_max", of), summary.most, into);
    add_scalar(fmt::format("sample_staleness_{}_min", of), summary.least, into);
  };
  add("theta", staleness->theta);
  add("proximal", staleness->proximal);
  add_scalar("v_theta", static_cast<double>(current_version), into);
  add_scalar("v_proximal", static_cast<double>(current_version - 1), into);
  add_scalar("n_valid_generated_tokens", static_cast<double>(staleness->tokens), into);
}

}  // namespace areal::algo
