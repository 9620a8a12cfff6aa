// The info of the last whole checkpoint on stable storage: which slot holds it, and what it is a checkpoint of.
//
// Checkpoints go to two slots in turn. The values of a slot are written first and the key that names the slot last, so
// that the info never refers to a checkpoint that is not there (INV-REC-ATOMIC, spec/transfer.md 11.3): whoever dies in
// between leaves the checkpoint before it. A value that is not the expected one is read and written over: there is one
// writer. Part of the training loop's state; not thread-safe.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/fields.h"
#include "engine/proto/effect.h"

namespace areal::proto {

struct CheckpointRecord {
  Epoch training_epoch = 0;  // That it was written under.
  Version version = 0;       // Not 0.
  std::uint64_t step = 0;    // That comes next.
  std::uint32_t slot = 0;
  std::int64_t accepted = 0;  // Sample groups that the staleness capacity counts.
  Digest128 digest;           // Sum over all ranks.
  bool operator==(const CheckpointRecord&) const = default;
  AREAL_FIELDS(training_epoch, version, step, slot, accepted, digest)
};

class CheckpointInfo {
 public:
  enum class Event : std::uint8_t { kNone, kWritten, kRead, kFailed };

  // Store operations are unique over incarnations.
  void start(Incarnation incarnation) { last_op_ = std::max(last_op_, std::uint64_t{incarnation} << 32); }

  // Either ends as an event of on_stored(), unless one of them or drop() follows before.
  void write(const CheckpointRecord& record, Outbox& out);
  void read(Outbox& out);
  void drop() { phase_ = Phase::kIdle, waits_for_put_ = false; }
  Event on_stored(const port::StoreDone& done, Outbox& out);

  // What was read or written last; nothing if there is no whole checkpoint.
  [[nodiscard]] const std::optional<CheckpointRecord>& record() const { return record_; }
  // The slot that the next checkpoint goes to: never the one that the info names.
  [[nodiscard]] std::uint32_t free_slot() const { return record_.has_value() ? 1 - record_->slot : 0; }

  AREAL_FIELDS(phase_, moving_, place_, retries_, last_op_, put_, waits_for_put_, known_, record_)

 private:
  enum class Phase : std::uint8_t { kIdle, kWriting, kReadingCurrent, kReadingSlot };
  static constexpr std::size_t kParts = 3;  // Values of a slot.

  void put(Outbox& out);
  void get(Outbox& out);
  Event on_put(const port::StoreDone& done, Outbox& out);
  Event on_got(const port::StoreDone& done, Outbox& out);
  // Index into known_ of what is moved now: parts of the slot, then the key that names it.
  [[nodiscard]] std::size_t index() const;
  [[nodiscard]] Digest128 value() const;

  Phase phase_ = Phase::kIdle;
  OpId put_;  // Under way, wanted or not; 0: none. The store promises no order, so a read waits for it.
  bool waits_for_put_ = false;  // A read does.
  CheckpointRecord moving_;     // Being written, or read so far.
  std::uint64_t place_ = 0;     // Of the values: which one is under way.
  std::uint32_t retries_ = 0;
  std::uint64_t last_op_ = 0;
  std::array<Digest128, 2 * kParts + 1> known_{};  // As last written or read: what a put expects.
  std::optional<CheckpointRecord> record_;
};

}  // namespace areal::proto
