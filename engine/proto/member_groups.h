// The groups of one epoch as one member holds them: NCCL for payload, Gloo beside it for votes and barriers, and a
// training rank's own: one with all training ranks for votes, and one with each set of copies of what it holds.
//
// All exist or none does (INV-GLOO-PAIR). They are joined in this order: payload, control, then the training rank's own
// together, then the liveness exchange on the payload group and a barrier on the control group. Group ids are never
// used twice.
//
// Part of a member's state; not thread-safe.
#pragma once
#include <utility>
#include <vector>

#include "engine/proto/effect.h"
#include "engine/proto/messages.h"

namespace areal::proto {

constexpr GroupId payload_group(Epoch epoch) { return {std::uint64_t{epoch} * 2}; }
constexpr GroupId control_group(Epoch epoch) { return {std::uint64_t{epoch} * 2 + 1}; }
// Of the training side. REQUIRES: epoch < 2^16 and replica < 2^16.
constexpr GroupId train_group(Epoch epoch) { return {(std::uint64_t{1} << 32) | (std::uint64_t{epoch} << 16)}; }
constexpr GroupId replica_group(Epoch epoch, std::uint32_t replica) { return {train_group(epoch).value | replica}; }
constexpr bool is_side_group(GroupId group) { return group.value >> 32 == 1; }
// REQUIRES: is_side_group(group).
constexpr Epoch epoch_of_side(GroupId group) { return static_cast<Epoch>((group.value >> 16) & 0xFFFF); }

// Names one meeting of a control group: every use has its own, so that none can be mistaken for an earlier one.
enum class MeetingKind : std::uint8_t { kLiveness = 1, kVerify = 2, kFinish = 3, kNeed = 4, kMasks = 5, kMode = 6 };
constexpr std::uint64_t meeting_tag(Version version, Attempt attempt, MeetingKind kind) {
  return (version << 24) | (std::uint64_t{attempt} << 8) | static_cast<std::uint64_t>(kind);
}

// A group that a training rank joins besides payload and control.
struct SideGroup {
  std::uint32_t replica = 0;  // 0: all training ranks.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
};

class MemberGroups {
 public:
  enum class State : std::uint8_t {
    kNone,
    kJoiningPayload,
    kJoiningControl,
    kJoiningSides,
    kExchanging,
    kMeeting,
    kReady,
    kAborting
  };

  MemberGroups() = default;
  explicit MemberGroups(std::vector<SideGroup> sides) : sides_(std::move(sides)) {}

  // What an input meant to the groups.
  enum class Event : std::uint8_t { kNotMine, kProgress, kReady, kFailed, kAborted };

  void join(const InitGroups& init, Outbox& out);
  Event on_joined(const port::GroupJoined& in, Outbox& out);
  // Batches of the liveness exchange; later batches are not the groups' own.
  Event on_batch(const port::BatchDone& in, Outbox& out);
  Event on_aborted(const port::GroupAborted& in);

  // Ends every operation of all groups; kAborted follows. Nothing to end: returns false.
  bool abort(Outbox& out);
  // Leaves all groups. REQUIRES: no operation of them is under way.
  void leave(Outbox& out);

  BatchId next_batch() { return {++last_batch_}; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Epoch epoch() const { return init_.epoch; }
  [[nodiscard]] const InitGroups& init() const { return init_; }

  AREAL_FIELDS(state_, init_, last_batch_, awaited_, joining_, aborting_)

 private:
  void join_sides(Outbox& out);
  void exchange(Outbox& out);
  // The i-th group: payload, control, then the sides.
  [[nodiscard]] GroupId group_at(std::size_t index) const;
  [[nodiscard]] std::size_t groups() const { return sides_.size() + 2; }
  // A bit for the group; 0 for one that is not of this epoch.
  [[nodiscard]] std::uint32_t bit_of(GroupId group) const;

  std::vector<SideGroup> sides_;  // Set at construction.
  State state_ = State::kNone;
  InitGroups init_;
  std::uint64_t last_batch_ = 0;
  BatchId awaited_;
  std::uint32_t joining_ = 0;   // Sides that have not met yet: a bit each.
  std::uint32_t aborting_ = 0;  // Groups that have not said that they ended: a bit each.
};

}  // namespace areal::proto
