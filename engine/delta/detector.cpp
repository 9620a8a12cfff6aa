#include "engine/delta/detector.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::delta {
namespace {

bool differs(const std::optional<Fingerprint>& recorded, const Fingerprint& now) {
  return recorded.has_value() && *recorded != now;
}

// Whether bytes of a parameter that nobody stepped changed behind the optimizer's back.
bool changed_unseen(const Watermark& watermark, const ParameterState& state) {
  return differs(watermark.model, state.model) || (state.has_entry && differs(watermark.shard, state.shard));
}

}  // namespace

Watermark watermark_of(const ParameterState& state, const std::optional<Fingerprint>& payload) {
  Watermark watermark;
  watermark.known = true;
  watermark.model = state.model;
  watermark.payload = payload;
  if (!state.has_entry) return watermark;
  watermark.step = state.step;
  watermark.shard = state.shard;
  return watermark;
}

Classified classify(const Watermark& watermark, const ParameterState& state) {
  if (!state.has_entry) return {Contribution::kNothing};
  const std::uint64_t step = state.step.value_or(0);
  if (step == 0) return {Contribution::kBadState};
  if (!watermark.known) return {Contribution::kForce};
  const std::uint64_t last = watermark.step.value_or(0);
  if (step == last) return {watermark.shard == state.shard ? Contribution::kUnchanged : Contribution::kForce};
  if (step < last || step - last != 1) return {Contribution::kForce};
  if (!watermark.shard.has_value()) return {Contribution::kForce};
  if (!state.has_moments) return {Contribution::kBadState, true};
  if (!state.has_recorded_lr) return {Contribution::kForce, true};
  return {Contribution::kContributes, true};
}

ReducedStatus status_of(const Classified& local, const ParameterState& state, bool forced) {
  const bool contributes = local.contribution == Contribution::kContributes;
  const bool forces = forced || local.contribution == Contribution::kForce;
  return {.contributed = contributes ? 1U : 0U, .force = forces ? 1U : 0U, .owned = contributes ? state.owned : 0U};
}

Resolution resolve(const ReducedStatus& sums, const Watermark& watermark, const ParameterState& state,
                   const Classified& local, std::uint64_t numel) {
  if (sums.force > 0) return Resolution::kForce;
  if (sums.contributed == 0) {
    if (local.expected_one_step || changed_unseen(watermark, state)) return Resolution::kForce;
    return Resolution::kNoOverride;
  }
  return sums.owned == numel ? Resolution::kOverride : Resolution::kForce;
}

PayloadVerdict judge_empty_mask(const Watermark& watermark, const Fingerprint& payload) {
  return watermark.payload == payload ? PayloadVerdict::kKeep : PayloadVerdict::kDense;
}

const Watermark& Detector::watermark(std::size_t index) const {
  static constexpr Watermark kEmpty{};
  return index < watermarks_.size() ? watermarks_[index] : kEmpty;
}

bool Detector::has_watermark() const { return std::ranges::any_of(watermarks_, &Watermark::known); }

}  // namespace areal::delta
