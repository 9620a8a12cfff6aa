#include "engine/algo/critic_loss.h"

#include <algorithm>

#include "engine/algo/loss_run.h"

namespace areal::algo {

std::optional<ValueDistance> value_distance_from(std::string_view name) {
  if (name == "mse") return ValueDistance::kHalfSquare;
  if (name == "huber") return ValueDistance::kHuber;
  return std::nullopt;
}

Status critic_loss(const CriticSettings& settings, const ValueElements& elements, Statistics statistics,
                   CriticLoss& into) {
  const std::size_t length = elements.values.size();
  if (elements.old_values.size() != length || elements.targets.size() != length ||
      (elements.mask && elements.mask->size() != length)) {
    return Error{Errc::kInvalid, "values, old values, targets and mask differ in length"};
  }
  AREAL_TRY(check_clip(settings.clip));
  const double denominator =
      elements.mask ? denominator_of(*elements.mask) : static_cast<double>(std::max<std::size_t>(1, length));
  const ValueArrays in{elements.values.data(),
                       elements.old_values.data(),
                       elements.targets.data(),
                       elements.mask ? elements.mask->data() : nullptr,
                       length,
                       static_cast<float>(1 / denominator)};
  const ValueBand band{static_cast<float>(settings.clip), settings.distance == ValueDistance::kHuber};
  TokenResults results;
  results.gradient = sized(into.gradient, length);
  into.element_loss.clear();
  into.is_clipped.clear();
  if (statistics == Statistics::kFill) {
    results.loss = sized(into.element_loss, length);
    results.is_clipped = sized(into.is_clipped, length);
  }
  into.loss = static_cast<float>(loss_kernels().critic(band, in, results) / denominator);
  return Unit{};
}

}  // namespace areal::algo
