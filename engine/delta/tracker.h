// When a sender must send everything, seen from the versions alone.
//
// Invariants (spec/transfer.md 1.12, 1.14):
//   1. base_version is what receivers hold: it moves only by seed(), after a full transfer was committed, and by
//      mark_delta_committed(), after a delta was; a delta moves it by exactly 1.
//   2. deltas_since_anchor counts committed deltas since the last full transfer, whatever that was for. With an anchor
//      interval N it is at most N: after a full a, versions a + 1 .. a + N are deltas, a + N + 1 is full.
//   3. Once a full transfer is due, it stays due until seed() or reset().
// No tensors are kept here. A value; one loop owns it.
#pragma once
#include <cstdint>
#include <optional>

#include "engine/base/fields.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/port/notes.h"

namespace areal::delta {

class DeltaTracker {
 public:
  DeltaTracker() = default;
  // `anchor_interval`: deltas between two full transfers; 0: a full transfer is never due for that.
  explicit DeltaTracker(std::uint64_t anchor_interval) : anchor_interval_(anchor_interval) {}

  // Why the next version must be full, kNone if it need not be. Of several causes the first of: kNotSeeded, what was
  // requested, kAnchorInterval.
  [[nodiscard]] port::FullReason reason() const;

  [[nodiscard]] bool is_seeded() const { return base_version_.has_value(); }
  [[nodiscard]] std::optional<Version> base_version() const { return base_version_; }
  [[nodiscard]] std::uint64_t deltas_since_anchor() const { return deltas_since_anchor_; }

  // All receivers hold `version` by a full transfer. Call it after the commit: a transfer that fails leaves receivers
  // with something else.
  void seed(Version version);
  // All receivers hold `version` by a delta. kInvalid if that cannot be, as there was no base, a full transfer was due,
  // or `version` is not base + 1: then nothing moves, and the next version is full, for kCommitFailed unless one was
  // requested before.
  Status mark_delta_committed(Version version);
  // The next version is full for `why`, in place of what was requested before. REQUIRES: why is not kNone.
  void request_full(port::FullReason why);
  // As at construction: nobody is known to hold anything.
  void reset();

  AREAL_FIELDS(anchor_interval_, base_version_, deltas_since_anchor_, requested_)

 private:
  // Set at construction.
  std::uint64_t anchor_interval_ = 0;
  // Changed by seed(), mark_delta_committed() and reset().
  std::optional<Version> base_version_;
  std::uint64_t deltas_since_anchor_ = 0;
  port::FullReason requested_ = port::FullReason::kNone;
};

}  // namespace areal::delta
