#include "engine/proto/write_lock.h"

namespace areal::proto {

void add_lock_kinds(KindTable& kinds) { kinds.add<AcquireWriter>(); }

WriteLock::Next WriteLock::want(Version version, const LockView& view) {
  version_ = version;
  claim_ = policy_(view);
  phase_ = WriterPhase::kClaimed;
  return claim_.takes_now ? acquire(version, view) : Next::kAcquireLater;
}

WriteLock::Next WriteLock::acquire(Version version, const LockView& view) {
  if (phase_ != WriterPhase::kClaimed || version != version_) return Next::kNothing;
  phase_ = WriterPhase::kWaiting;
  return readers_changed(view);
}

WriteLock::Next WriteLock::readers_changed(const LockView& view) {
  if (phase_ != WriterPhase::kWaiting) return Next::kNothing;
  const std::uint32_t holders = view.decoding + (claim_.parked_hold ? view.parked : 0);
  if (claim_.excludes && holders > 0) return Next::kNothing;
  phase_ = WriterPhase::kWriting;
  return Next::kGrant;
}

void WriteLock::ended(Version held, Version current) {
  const bool uncommitted = phase_ == WriterPhase::kWriting && held == version_ && held != current;
  phase_ = uncommitted ? WriterPhase::kUncommitted : WriterPhase::kNone;
}

void WriteLock::committed(Version version) {
  const bool wrote = phase_ == WriterPhase::kWriting || phase_ == WriterPhase::kUncommitted;
  if (wrote && version == version_) phase_ = WriterPhase::kNone;
}

bool WriteLock::lets_decode() const {
  const bool taken = phase_ != WriterPhase::kNone && phase_ != WriterPhase::kClaimed;
  return !taken || !claim_.excludes;
}

bool WriteLock::is_behind_parked(const LockView& view) const {
  return phase_ == WriterPhase::kWaiting && claim_.parked_hold && view.parked > 0;
}

}  // namespace areal::proto
