#include "engine/proto/member_groups.h"

namespace areal::proto {
namespace {

// One message of the liveness exchange. Source: the reference's group check.
constexpr std::uint64_t kLivenessElements = 100;

}  // namespace

void MemberGroups::join(const InitGroups& init, Outbox& out) {
  AREAL_CHECK(state_ == State::kNone);
  init_ = init;
  state_ = State::kJoiningPayload;
  out.push(port::JoinGroup{payload_group(init.epoch), port::Backend::kNccl, init.rank, init.world, init.port});
}

GroupId MemberGroups::group_at(std::size_t index) const {
  if (index == 0) return payload_group(init_.epoch);
  if (index == 1) return control_group(init_.epoch);
  return replica_group(init_.epoch, sides_[index - 2].replica);
}

std::uint32_t MemberGroups::bit_of(GroupId group) const {
  for (std::size_t i = 0; i < groups(); ++i) {
    if (group_at(i) == group) return std::uint32_t{1} << i;
  }
  return 0;
}

MemberGroups::Event MemberGroups::on_joined(const port::GroupJoined& in, Outbox& out) {
  const bool payload = state_ == State::kJoiningPayload && in.group == payload_group(init_.epoch);
  const bool control = state_ == State::kJoiningControl && in.group == control_group(init_.epoch);
  const std::uint32_t side = state_ == State::kJoiningSides ? joining_ & bit_of(in.group) : 0;
  if (!payload && !control && side == 0) return Event::kNotMine;
  if (in.outcome != Outcome::kOk) return Event::kFailed;
  joining_ &= ~side;
  if (payload) {
    state_ = State::kJoiningControl;
    out.push(port::JoinGroup{control_group(init_.epoch), port::Backend::kGloo, init_.rank, init_.world, init_.port});
  } else if (control && !sides_.empty()) {
    join_sides(out);
  } else if (joining_ == 0) {
    exchange(out);
  }
  return Event::kProgress;
}

void MemberGroups::join_sides(Outbox& out) {
  state_ = State::kJoiningSides;
  for (const SideGroup& side : sides_) {
    const GroupId group = replica_group(init_.epoch, side.replica);
    joining_ |= bit_of(group);
    const port::Backend backend = side.replica == 0 ? port::Backend::kGloo : port::Backend::kNccl;
    out.push(port::JoinGroup{group, backend, side.rank, side.world, init_.port});
  }
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
  std::size_t joined = groups();
  if (state_ == State::kJoiningPayload) joined = 1;
  if (state_ == State::kJoiningControl) joined = 2;
  aborting_ = (std::uint32_t{1} << joined) - 1;
  joining_ = 0;
  state_ = State::kAborting;
  for (std::size_t i = 0; i < joined; ++i) out.push(port::AbortGroup{group_at(i)});
  return true;
}

MemberGroups::Event MemberGroups::on_aborted(const port::GroupAborted& in) {
  const std::uint32_t ended = aborting_ & bit_of(in.group);  // 0 also if it comes twice.
  if (state_ != State::kAborting || ended == 0) return Event::kNotMine;
  aborting_ &= ~ended;
  if (aborting_ != 0) return Event::kProgress;
  state_ = State::kNone;
  return Event::kAborted;
}

void MemberGroups::leave(Outbox& out) {
  AREAL_CHECK(state_ == State::kReady);
  for (std::size_t i = 0; i < groups(); ++i) out.push(port::LeaveGroup{group_at(i)});
  state_ = State::kNone;
}

}  // namespace areal::proto
