#include "engine/algo/grpo_loss.h"

#include "engine/algo/cispo_loss.h"
#include "engine/algo/m2po.h"
#include "engine/algo/ppo_loss.h"
#include "engine/algo/sapo_loss.h"

namespace areal::algo {

namespace {

Status surrogate(const GrpoSettings& settings, const PolicyTokens& tokens, PolicyLoss& into) {
  if (settings.uses_sapo) {
    return sapo_loss({settings.tau_of_gain, settings.tau_of_loss, settings.level}, tokens, Statistics::kFill, into);
  }
  if (settings.uses_cispo) {
    return cispo_loss({settings.clip, settings.clip_higher, settings.rejection}, tokens, Statistics::kFill, into);
  }
  const PpoSettings ppo{settings.clip, settings.clip_higher, settings.dual_clip, settings.level, settings.rejection};
  return ppo_actor_loss(ppo, tokens, Statistics::kFill, into);
}

ProximalSources sources_of(const GrpoSettings& settings, const GrpoTokens& tokens) {
  ProximalSources sources{tokens.old, tokens.logprobs, tokens.recomputed, tokens.versions, settings.current_version};
  // The log-probabilities of this very forward pass, as constants: a ratio of 1 with a gradient.
  if (!sources.recomputed && settings.method == ProximalMethod::kReuseTrainLogp) sources.recomputed = tokens.logprobs;
  return sources;
}

LossStatistics statistics_of(const GrpoSettings& settings, const GrpoTokens& tokens, const PolicyTokens& policy,
                             const PolicyLoss& loss) {
  LossStatistics statistics = loss_statistics(policy, loss, tokens.entropy);
  add_approximation_statistics(settings.method, sources_of(settings, tokens), policy.mask, statistics);
  if (tokens.versions && settings.current_version) {
    const auto& behaviour = loss.statistics.behaviour;
    add_staleness(*tokens.versions, behaviour ? Mask(behaviour->kept) : policy.mask, *settings.current_version,
                  statistics);
  }
  return statistics;
}

Status check_lengths(const GrpoTokens& tokens) {
  const std::size_t length = tokens.logprobs.size();
  const bool fits = tokens.old.size() == length && tokens.mask.size() == length &&
                    (!tokens.versions || tokens.versions->size() == length) &&
                    (!tokens.recomputed || tokens.recomputed->size() == length) &&
                    (tokens.entropy.empty() || tokens.entropy.size() == length);
  if (!fits) return Error{Errc::kInvalid, "log-probabilities, mask, versions and entropy differ in length"};
  return Unit{};
}

}  // namespace

Status check_grpo(const GrpoSettings& settings) {
  const auto refuse = [](const char* why) { return Error{Errc::kInvalid, why}; };
  if (settings.uses_sapo && settings.uses_cispo) return refuse("CISPO and SAPO exclude each other");
  if (settings.uses_cispo && settings.level == RatioLevel::kSequence) return refuse("CISPO has no form for sequences");
  if (settings.uses_cispo && !(settings.clip_higher.value_or(0) > 0))
    return refuse("CISPO needs an upper clip above 0");
  if (settings.uses_sapo && settings.is_decoupled) return refuse("SAPO has no decoupled form");
  return Unit{};
}

Result<GrpoLoss> grpo_loss(const GrpoSettings& settings, const GrpoTokens& tokens) {
  AREAL_TRY(check_grpo(settings));
  AREAL_TRY(check_lengths(tokens));
  auto proximal = resolve_proximal(settings.method, sources_of(settings, tokens));
  if (!proximal) return std::move(proximal).error();
  GrpoLoss result;
  result.proximal = std::move(proximal).value();
  result.mask.assign(tokens.mask.begin(), tokens.mask.end());
  if (settings.m2_threshold) {
    auto narrowed = m2po_mask(tokens.old, result.proximal, tokens.mask, *settings.m2_threshold);
    if (!narrowed) return std::move(narrowed).error();
    result.mask = std::move(narrowed).value();
  }
  const PolicyTokens policy{tokens.logprobs, result.proximal, tokens.old, tokens.advantages, result.mask, tokens.rows};
  AREAL_TRY(surrogate(settings, policy, result.joint));
  result.statistics = statistics_of(settings, tokens, policy, result.joint);
  if (tokens.teacher) {
    AREAL_TRY(distil(tokens.weights, tokens.logprobs, tokens.old, *tokens.teacher, result.mask, result.joint));
  }
  return result;
}

}  // namespace areal::algo
