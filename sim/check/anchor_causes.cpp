// Keeps causes of full updates, and says which reason fits which cause.
#include "sim/check/anchor_causes.h"

namespace areal::sim {

bool explains(AnchorCause cause, port::FullReason reason) {
  using enum port::FullReason;
  const bool empty = reason == kNotSeeded || reason == kInitialFull;
  const bool broken = reason == kPeerLost || reason == kRetry || reason == kRecovered || reason == kBaseMismatch;
  switch (cause) {
    case AnchorCause::kUnseeded:
      return empty;
    case AnchorCause::kLost:
    case AnchorCause::kRecovered:
      return empty || broken;
    case AnchorCause::kFailed:
    case AnchorCause::kRefused:
      return empty || broken || reason == kCommitFailed;
    case AnchorCause::kSteps:
      return reason == kInversionInfeasible;
    case AnchorCause::kInterval:
      return reason == kAnchorInterval;
    case AnchorCause::kInversion:
      // kCommitFailed: what was acknowledged could not be recorded.
      return reason == kInversionError || reason == kInversionInfeasible || reason == kInitialFull ||
             reason == kCommitFailed;
  }
  return false;
}

void AnchorCauses::begin_update() {
  present_.insert(present_.end(), coming_.begin(), coming_.end());
  coming_.clear();
}

void AnchorCauses::end_update(bool well) {
  if (well) present_.clear();
}

}  // namespace areal::sim
