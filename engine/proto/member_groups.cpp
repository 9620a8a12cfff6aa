#include "engine/proto/member_groups.h"

namespace areal::proto {
namespace {

// One message of the liveness exchange. Source: the reference's group check.
constexpr std::uint64_t kLivenessElements = 100;

constexpr std::uint32_t kPayloadBit = 1;
constexpr std::uint32_t kControlBit = 2;

}  // namespace

void MemberGroups::join(const InitGroups& init, Outbox& out) {
  AREAL_CHECK(state_ == State::kNone);
  init_ = init;
  state_ = State::kJoiningPayload;
  out.push(port::JoinGroup{payload_group(init.epoch), port::Backend::kNccl, init.rank, init.world, init.port});
}

MemberGroups::Event MemberGroups::on_joined(const port::GroupJoined& in, Outbox& out) {
  const bool payload = state_ == State::kJoiningPayload && in.group == payload_group(init_.epoch);
  const bool control = state_ == State::kJoiningControl && in.group == control_group(init_.epoch);
  if (!payload && !control) return Event::kNotMine;
  if (in.outcome != Outcome::kOk) return Event::kFailed;
  if (payload) {
    state_ = State::kJoiningControl;
    out.push(port::JoinGroup{control_group(init_.epoch), port::Backend::kGloo, init_.rank, init_.world, init_.port});
    return Event::kProgress;
  }
  exchange(out);
  return Event::kProgress;
}

// Even worlds: the upper half sends to the lower. Odd worlds: a ring, each both sends and receives.
void MemberGroups::exchange(Outbox& out) {
  state_ = State::kExchanging;
  const bool sends = init_.world % 2 == 1 || init_.rank >= init_.world / 2;
  awaited_ = next_batch();
  out.push(port::PostBatch{.group = payload_group(init_.epoch),
                           .batch = awaited_,
                           .kind = sends ? port::BatchKind::kSend : port::BatchKind::kReceive,
                           .tag = meeting_tag(0, 0, MeetingKind::kLiveness),
                           .dtype = DType::kF32,
                           .storage_dtype = DType::kF32,
                           .elements = kLivenessElements,
                           .bytes = kLivenessElements * size_of(DType::kF32)});
}

MemberGroups::Event MemberGroups::on_batch(const port::BatchDone& in, Outbox& out) {
  if (state_ != State::kExchanging && state_ != State::kMeeting) return Event::kNotMine;
  if (in.batch != awaited_) return Event::kNotMine;
  if (in.outcome != Outcome::kOk) return Event::kFailed;
  if (state_ == State::kMeeting) {
    state_ = State::kReady;
    return Event::kReady;
  }
  state_ = State::kMeeting;
  awaited_ = next_batch();
  out.push(port::PostBatch{.group = control_group(init_.epoch),
                           .batch = awaited_,
                           .kind = port::BatchKind::kBarrier,
                           .tag = meeting_tag(0, 0, MeetingKind::kLiveness)});
  return Event::kProgress;
}

bool MemberGroups::abort(Outbox& out) {
  if (state_ == State::kNone || state_ == State::kAborting) return state_ == State::kAborting;
  const bool has_control = state_ != State::kJoiningPayload;
  aborting_ = kPayloadBit | (has_control ? kControlBit : 0U);
  state_ = State::kAborting;
  out.push(port::AbortGroup{payload_group(init_.epoch)});
  if (has_control) out.push(port::AbortGroup{control_group(init_.epoch)});
  return true;
}

MemberGroups::Event MemberGroups::on_aborted(const port::GroupAborted& in) {
  const std::uint32_t payload = in.group == payload_group(init_.epoch) ? kPayloadBit : 0U;
  const std::uint32_t control = in.group == control_group(init_.epoch) ? kControlBit : 0U;
  const std::uint32_t ended = aborting_ & (payload | control);  // 0 also if it comes twice.
  if (state_ != State::kAborting || ended == 0) return Event::kNotMine;
  aborting_ &= ~ended;
  if (aborting_ != 0) return Event::kProgress;
  state_ = State::kNone;
  return Event::kAborted;
}

void MemberGroups::leave(Outbox& out) {
  AREAL_CHECK(state_ == State::kReady);
  out.push(port::LeaveGroup{payload_group(init_.epoch)});
  out.push(port::LeaveGroup{control_group(init_.epoch)});
  state_ = State::kNone;
}

}  // namespace areal::proto
