// The lock between decoding and writing weights in place, as a small machine inside an engine's server.
//
// Readers are running decodes; the one writer is the receiver. A writer closes admission and is granted once no reader
// holds the lock. A decode that a pause parked holds nothing, so a pause lets a waiting writer in; a decode that is
// parked stays parked until the write was committed, whoever says "continue" meanwhile. To see that readers are there
// and to take the lock is one step; that it is one is the policy's answer.
//
// The server counts the readers and hands the numbers in; this machine holds only the writer's side. One writer; a new
// wish of the writer replaces the one before. Not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/record.h"

namespace areal::proto {

// What a server tells itself between the check and the take, under a policy that takes later.
struct AcquireWriter {
  Version version = 0;
  AREAL_RECORD(0x1125, "acquire_writer", version)
};
void add_lock_kinds(KindTable& kinds);

// The readers' side at one moment.
struct LockView {
  bool paused = false;
  std::uint32_t decoding = 0;
  std::uint32_t parked = 0;
};

// How a writer goes about it, decided at its check.
struct WriterClaim {
  bool takes_now = true;     // Check and take are one step. False: the take comes with an AcquireWriter of its own.
  bool excludes = true;      // Closes admission and waits for readers. False: writes as if nothing could decode.
  bool parked_hold = false;  // Decodes that a pause parked still hold the lock.
  AREAL_FIELDS(takes_now, excludes, parked_hold)
};

using LockPolicy = WriterClaim (*)(const LockView& view);
// The product's: one critical section, whatever the view.
constexpr WriterClaim claim_at_once(const LockView& /*view*/) { return {true, true, false}; }

enum class WriterPhase : std::uint8_t { kNone, kClaimed, kWaiting, kWriting, kUncommitted };
constexpr std::array<std::string_view, 5> enum_names(WriterPhase /*tag*/) {
  return {"none", "claimed", "waiting", "writing", "uncommitted"};
}

class WriteLock {
 public:
  enum class Next : std::uint8_t { kNothing, kGrant, kAcquireLater };

  explicit WriteLock(LockPolicy policy = claim_at_once) : policy_(policy) {}

  // The writer wants to write `version`.
  Next want(Version version, const LockView& view);
  // The second step of a claim that takes later; kNothing if no such claim stands.
  Next acquire(Version version, const LockView& view);
  // Readers came, went or were parked.
  Next readers_changed(const LockView& view);
  // The writer is done and the weights are whole: `held`, while `current` is what was last committed. They may differ
  // from what it wanted to write: it gave up before it began.
  void ended(Version held, Version current);
  // The engine's weights are `version` now.
  void committed(Version version);
  // Forgets the writer: its weights are unproven and nothing decodes until a commit.
  void drop() { phase_ = WriterPhase::kNone; }

  [[nodiscard]] bool lets_decode() const;
  // The writer waits for decodes that are parked, which go on only when somebody continues them.
  [[nodiscard]] bool is_behind_parked(const LockView& view) const;
  [[nodiscard]] WriterPhase phase() const { return phase_; }
  [[nodiscard]] Version version() const { return version_; }

  AREAL_FIELDS(phase_, version_, claim_)

 private:
  LockPolicy policy_;
  WriterPhase phase_ = WriterPhase::kNone;
  Version version_ = 0;  // Of the writer; meaningless when there is none.
  WriterClaim claim_;
};

}  // namespace areal::proto
