// The two groups of one epoch as one member holds them: NCCL for payload, Gloo beside it for votes and barriers.
//
// Both exist or neither does (INV-GLOO-PAIR). They are joined in this order: payload, control, then the liveness
// exchange on the payload group and a barrier on the control group. Group ids are never used twice: epoch * 2 and
// epoch * 2 + 1.
//
// Part of a member's state; not thread-safe.
#pragma once
#include "engine/proto/effect.h"
#include "engine/proto/messages.h"

namespace areal::proto {

constexpr GroupId payload_group(Epoch epoch) { return {std::uint64_t{epoch} * 2}; }
constexpr GroupId control_group(Epoch epoch) { return {std::uint64_t{epoch} * 2 + 1}; }
constexpr bool is_control_group(GroupId group) { return group.value % 2 == 1; }

// Names one meeting of a control group: every use has its own, so that none can be mistaken for an earlier one.
enum class MeetingKind : std::uint8_t { kLiveness = 1, kVerify = 2, kFinish = 3 };
constexpr std::uint64_t meeting_tag(Version version, Attempt attempt, MeetingKind kind) {
  return (version << 24) | (std::uint64_t{attempt} << 8) | static_cast<std::uint64_t>(kind);
}

class MemberGroups {
 public:
  enum class State : std::uint8_t { kNone, kJoiningPayload, kJoiningControl, kExchanging, kMeeting, kReady, kAborting };

  // What an input meant to the groups.
  enum class Event : std::uint8_t { kNotMine, kProgress, kReady, kFailed, kAborted };

  void join(const InitGroups& init, Outbox& out);
  Event on_joined(const port::GroupJoined& in, Outbox& out);
  // Batches of the liveness exchange; later batches are not the groups' own.
  Event on_batch(const port::BatchDone& in, Outbox& out);
  Event on_aborted(const port::GroupAborted& in);

  // Ends every operation of both groups; kAborted follows. Nothing to end: returns false.
  bool abort(Outbox& out);
  // Leaves both groups. REQUIRES: no operation of them is under way.
  void leave(Outbox& out);

  BatchId next_batch() { return {++last_batch_}; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Epoch epoch() const { return init_.epoch; }
  [[nodiscard]] const InitGroups& init() const { return init_; }

  AREAL_FIELDS(state_, init_, last_batch_, awaited_, aborting_)

 private:
  void exchange(Outbox& out);

  State state_ = State::kNone;
  InitGroups init_;
  std::uint64_t last_batch_ = 0;
  BatchId awaited_;
  std::uint32_t aborting_ = 0;  // Which of the two have not said that they ended: a bit each.
};

}  // namespace areal::proto
