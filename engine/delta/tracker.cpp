#include "engine/delta/tracker.h"

#include <fmt/format.h>

#include "engine/base/check.h"

namespace areal::delta {

using port::FullReason;

FullReason DeltaTracker::reason() const {
  if (!base_version_.has_value()) return FullReason::kNotSeeded;
  if (requested_ != FullReason::kNone) return requested_;
  if (anchor_interval_ > 0 && deltas_since_anchor_ >= anchor_interval_) return FullReason::kAnchorInterval;
  return FullReason::kNone;
}

void DeltaTracker::seed(Version version) {
  base_version_ = version;
  deltas_since_anchor_ = 0;
  requested_ = FullReason::kNone;
}

Status DeltaTracker::mark_delta_committed(Version version) {
  if (!base_version_.has_value()) return Error{Errc::kInvalid, "a delta was committed before any full transfer"};
  const FullReason due = reason();
  if (due == FullReason::kNone && version == *base_version_ + 1) {
    base_version_ = version;
    ++deltas_since_anchor_;
    return Unit{};
  }
  if (requested_ == FullReason::kNone) requested_ = FullReason::kCommitFailed;
  if (due != FullReason::kNone) {
    return Error{Errc::kInvalid,
                 fmt::format("delta {} was committed although a full was due: {}", version, to_text(due))};
  }
  return Error{Errc::kInvalid, fmt::format("delta {} is not contiguous with base {}", version, *base_version_)};
}

void DeltaTracker::request_full(FullReason why) {
  AREAL_CHECK(why != FullReason::kNone);
  requested_ = why;
}

void DeltaTracker::reset() { *this = DeltaTracker(anchor_interval_); }

}  // namespace areal::delta
