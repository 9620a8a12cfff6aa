// Finding out what the last optimizer step changed, window by window, together with the copies of what a rank holds.
//
// For every window: invert, post the reductions with each set of copies, wait for all of them, compare. Nothing is
// under way while a window is compared (INV-DELTA-QUIET-YIELD), and no verdict ends the pass early: every rank posts
// the same reductions, and what one of them found out travels in their words (INV-DELTA-COLL-COUNT). A window whose
// inversion failed here is reduced all the same, with nothing to add and the wish for a full update. Source:
// spec/transfer.md 1.6.
//
// Part of a sender's state; it starts operations through the sender's member. Not thread-safe.
#pragma once
#include "engine/proto/update_member.h"

namespace areal::proto {

class Reconstruct {
 public:
  // `rate`: bits of the learning rate that the last step used, or kNoRate.
  void begin(std::uint64_t rate, UpdateMember& member, Outbox& out);
  // Both return true when the last window was compared; then why() says whether a delta is possible.
  bool on_compute(const port::ComputeDone& done, UpdateMember& member, Outbox& out);
  bool on_batch(const port::BatchDone& done, UpdateMember& member, Outbox& out);

  // kNone: a delta is possible.
  [[nodiscard]] FullReason why() const;
  // Elements that this rank's masks hold.
  [[nodiscard]] std::uint64_t changed() const { return changed_; }

  AREAL_FIELDS(window_, rate_, force_, failed_, wishes_, contributed_, contributed_sum_, changed_)

 private:
  void invert(UpdateMember& member, Outbox& out);
  void reduce(const port::ComputeDone& done, UpdateMember& member, Outbox& out);
  void compare(UpdateMember& member, Outbox& out);
  bool compared(const port::ComputeDone& done, UpdateMember& member, Outbox& out);

  std::uint32_t window_ = 0;
  std::uint64_t rate_ = port::kNoRate;
  bool force_ = false;                 // Sticky: a full update is certain.
  bool failed_ = false;                // Sticky: an operation of this rank failed.
  std::uint64_t wishes_ = 0;           // Members that want a full update, in the present window.
  std::uint64_t contributed_ = 0;      // Parameters of the present window, by this rank ...
  std::uint64_t contributed_sum_ = 0;  // ... and by all of its copies.
  std::uint64_t changed_ = 0;
};

}  // namespace areal::proto
