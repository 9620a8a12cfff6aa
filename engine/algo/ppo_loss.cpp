#include "engine/algo/ppo_loss.h"

#include <fmt/format.h>

#include "engine/algo/loss_run.h"
#include "engine/algo/policy_terms.h"
#include "engine/algo/sequence_ratio.h"

namespace areal::algo {

namespace {

RatioBand band_of(const PpoSettings& settings) {
  return {static_cast<float>(1 - settings.clip), static_cast<float>(1 + settings.clip_higher.value_or(settings.clip)),
          settings.dual_clip.has_value(), static_cast<float>(settings.dual_clip.value_or(0))};
}

void fill_token(const RatioTerm<float>& term, float ratio, float weight, bool is_counted, std::size_t at,
                TokenStatistics& statistics) {
  statistics.loss[at] = term.loss * weight;
  statistics.ratio[at] = ratio;
  statistics.is_clipped[at] = term.is_clipped && is_counted ? 1 : 0;
  statistics.is_dual_clipped[at] = term.is_dual_clipped && is_counted ? 1 : 0;
}

// What is not kept has neither ratio nor advantage.
void fill_row(const ClipBand<float>& clip, const TokenArrays& in, const SequenceRatio& sequence,
              const RatioTerm<float>& term, std::size_t begin, std::size_t end, TokenStatistics& statistics) {
  const RatioTerm<float> nothing = ppo_term<float>(0.0F, 0.0F, clip);
  for (std::size_t at = begin; at < end; ++at) {
    const bool is_kept = in.kept[at] != 0;
    const float weight = in.weights != nullptr ? in.weights[at] : 1.0F;
    fill_token(is_kept ? term : nothing, is_kept ? sequence.ratio : 0.0F, weight, in.counted[at] != 0, at, statistics);
    statistics.log_ratio[at] = in.logprobs[at] - in.base[at];
  }
}

// All kept tokens of a sequence have one term; each moves the ratio by 1 / kept of them.
double sequence_loss(const RatioBand& band, const PolicyTokens& tokens, const TokenArrays& in, Statistics statistics,
                     PolicyLoss& into) {
  const Rows& rows = *tokens.rows;
  const ClipBand<float> clip{band.low, band.high, band.has_dual, band.dual};
  const Mask kept(in.kept, in.count);
  const auto sequences = sequence_ratios(rows, tokens.logprobs, tokens.proximal, tokens.advantages, kept);
  double sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const SequenceRatio& sequence = sequences[row];
    const RatioTerm<float> term = ppo_term<float>(sequence.ratio, sequence.advantage, clip);
    double weights = 0;
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      if (kept[at] == 0) continue;
      const float weight = in.weights != nullptr ? in.weights[at] : 1.0F;
      weights += static_cast<double>(weight);
      sum += static_cast<double>(term.loss * weight);
    }
    const double share = weights / static_cast<double>(std::max<std::size_t>(1, sequence.kept));
    const double change = static_cast<double>(term.slope) * static_cast<double>(sequence.ratio) * share;
    const float gradient = static_cast<float>(change * static_cast<double>(in.scale));
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      into.gradient[at] = kept[at] != 0 ? gradient : 0.0F;
    }
    if (statistics == Statistics::kFill) {
      fill_row(clip, in, sequence, term, rows.begin(row), rows.end(row), into.statistics);
    }
  }
  return sum;
}

}  // namespace

Status ppo_actor_loss(const PpoSettings& settings, const PolicyTokens& tokens, Statistics statistics,
                      PolicyLoss& into) {
  AREAL_TRY(check_shapes(tokens));
  AREAL_TRY(check_clip(settings.clip));
  AREAL_TRY(check_clip(settings.clip_higher.value_or(0)));
  if (settings.dual_clip && !(*settings.dual_clip > 1)) {
    return Error{Errc::kInvalid, fmt::format("dual clip needs a bound above 1, not {}", *settings.dual_clip)};
  }
  if (settings.level == RatioLevel::kSequence && tokens.rows == nullptr) {
    return Error{Errc::kInvalid, "ratios of packed sequences need to know where they lie (cu_seqlens)"};
  }
  auto rejection = rejection_of(settings.rejection, tokens);
  if (!rejection) return std::move(rejection).error();
  const double denominator = denominator_of(tokens.mask);
  const TokenArrays in = arrays_of(tokens, tokens.proximal, *rejection ? &**rejection : nullptr, denominator);
  const RatioBand band = band_of(settings);
  const TokenResults results = results_of(into, in.count, statistics, false);
  const double sum = settings.level == RatioLevel::kToken ? loss_kernels().ppo(band, in, results)
                                                          : sequence_loss(band, tokens, in, statistics, into);
  into.loss = static_cast<float>(sum / denominator);
  if (*rejection && statistics == Statistics::kFill) {
    into.statistics.behaviour = behaviour_statistics(tokens, std::move(**rejection));
  }
  return Unit{};
}

}  // namespace areal::algo
