#include "engine/proto/checkpoint_info.h"

namespace areal::proto {
namespace {

// Keys of the store are shared with the gateway, which uses versions.
constexpr std::uint64_t kFirstKey = std::uint64_t{1} << 63;
constexpr std::uint32_t kMaxRetries = 8;

std::uint64_t word_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

std::size_t CheckpointInfo::index() const {
  return place_ == kParts ? 2 * kParts : std::size_t{moving_.slot} * kParts + static_cast<std::size_t>(place_);
}

// No value is all zero, which would mean that it is absent, but the digest of an empty trainer.
Digest128 CheckpointInfo::value() const {
  switch (place_) {
    case 0:
      return {moving_.training_epoch, moving_.version};
    case 1:
      return {moving_.step, word_of(moving_.accepted)};
    case 2:
      return moving_.digest;
    default:
      return {moving_.version, moving_.slot};
  }
}

void CheckpointInfo::write(const CheckpointRecord& record, Outbox& out) {
  phase_ = Phase::kWriting;
  moving_ = record;
  place_ = 0;
  retries_ = 0;
  put(out);
}

void CheckpointInfo::read(Outbox& out) {
  phase_ = Phase::kReadingCurrent;
  moving_ = {};
  place_ = kParts;
  waits_for_put_ = put_.value != 0;
  if (!waits_for_put_) get(out);
}

void CheckpointInfo::put(Outbox& out) {
  put_ = OpId{++last_op_};
  out.push(port::StorePut{put_, kFirstKey + index(), known_[index()], value()});
}

void CheckpointInfo::get(Outbox& out) { out.push(port::StoreGet{OpId{++last_op_}, kFirstKey + index()}); }

CheckpointInfo::Event CheckpointInfo::on_stored(const port::StoreDone& done, Outbox& out) {
  if (done.op == put_) put_ = {};
  if (waits_for_put_ && put_.value == 0) {
    waits_for_put_ = false;
    get(out);
    return Event::kNone;
  }
  if (waits_for_put_ || phase_ == Phase::kIdle || done.op.value != last_op_) return Event::kNone;
  const Event event = phase_ == Phase::kWriting ? on_put(done, out) : on_got(done, out);
  if (event != Event::kNone) phase_ = Phase::kIdle;
  return event;
}

CheckpointInfo::Event CheckpointInfo::on_put(const port::StoreDone& done, Outbox& out) {
  if (done.outcome == port::Outcome::kMismatch && retries_ < kMaxRetries) {
    ++retries_;
    known_[index()] = done.value;  // Of a write that was dropped, or of a controller before this one.
    put(out);
    return Event::kNone;
  }
  if (done.outcome != port::Outcome::kOk) return Event::kFailed;
  known_[index()] = value();
  if (place_ == kParts) {
    record_ = moving_;
    return Event::kWritten;
  }
  ++place_;
  put(out);
  return Event::kNone;
}

CheckpointInfo::Event CheckpointInfo::on_got(const port::StoreDone& done, Outbox& out) {
  if (phase_ == Phase::kReadingCurrent && done.outcome == port::Outcome::kRefused) {  // There never was one.
    record_.reset();
    return Event::kRead;
  }
  if (done.outcome != port::Outcome::kOk) return Event::kFailed;
  known_[index()] = done.value;
  if (phase_ == Phase::kReadingCurrent) {
    if (done.value.low > 1 || done.value.high == 0) return Event::kFailed;
    moving_.version = done.value.high;
    moving_.slot = static_cast<std::uint32_t>(done.value.low);
    phase_ = Phase::kReadingSlot;
    place_ = 0;
  } else {
    if (place_ == 0 && done.value.low != moving_.version) return Event::kFailed;  // Another checkpoint's values.
    if (place_ == 0) moving_.training_epoch = static_cast<Epoch>(done.value.high);
    if (place_ == 1) moving_.step = done.value.high, moving_.accepted = static_cast<std::int64_t>(done.value.low);
    if (place_ == 2) moving_.digest = done.value;
    if (++place_ == kParts) {
      record_ = moving_;
      return Event::kRead;
    }
  }
  get(out);
  return Event::kNone;
}

}  // namespace areal::proto
