#include "engine/algo/cispo_loss.h"

#include <fmt/format.h>

#include "engine/algo/loss_run.h"

namespace areal::algo {

Status cispo_loss(const CispoSettings& settings, const PolicyTokens& tokens, Statistics statistics, PolicyLoss& into) {
  AREAL_TRY(check_shapes(tokens));
  AREAL_TRY(check_clip(settings.clip));
  if (!settings.clip_higher || !(*settings.clip_higher > 0)) {
    return Error{Errc::kInvalid, settings.clip_higher
                                     ? fmt::format("CISPO needs an upper clip above 0, not {}", *settings.clip_higher)
                                     : "CISPO needs an upper clip above 0, not none"};
  }
  auto rejection = rejection_of(settings.rejection, tokens);
  if (!rejection) return std::move(rejection).error();
  const double denominator = denominator_of(tokens.mask);
  const TokenArrays in = arrays_of(tokens, tokens.proximal, *rejection ? &**rejection : nullptr, denominator);
  const RatioBand band{static_cast<float>(1 - settings.clip), static_cast<float>(1 + *settings.clip_higher)};
  const TokenResults results = results_of(into, in.count, statistics, false);
  into.loss = static_cast<float>(loss_kernels().cispo(band, in, results) / denominator);
  if (*rejection && statistics == Statistics::kFill) {
    into.statistics.behaviour = behaviour_statistics(tokens, std::move(**rejection));
  }
  return Unit{};
}

}  // namespace areal::algo
