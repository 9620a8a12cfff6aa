// One inference rank's part of a weight update: land in staging, verify, apply in place, fence, meet the others.
//
// Apply starts only when the verifying sum of all members was zero, and when rank 0's server has granted the write (it
// asks before it votes, so a zero sum also says that every engine stands still). A failure before apply leaves the old
// version whole; one after apply began leaves weights that nobody may serve until a full update: quarantine.
//
// With deltas on, it first takes part in the MIN vote of all ranks: for a delta only if it holds the base that the
// attempt names, and if its weights are proven.
#pragma once
#include "engine/proto/update_member.h"

namespace areal::proto {

class UpdateReceiver {
 public:
  static constexpr std::string_view kName = "update_receiver";

  // `serves`: this rank's node hosts the engine's server.
  UpdateReceiver(MemberOptions options, bool serves) : serves_(serves), member_(std::move(options)) {}

  void step(const Input& input, Outbox& out);

  [[nodiscard]] const UpdateMember& member() const { return member_; }
  [[nodiscard]] bool quarantined() const { return quarantined_; }
  void list_waits(WaitList& waits) const;

  AREAL_FIELDS(member_, stage_, mode_, quarantined_, wants_write_, landed_, received_, written_, tensors_, held_)

 private:
  enum class Stage : std::uint8_t {
    kNone,
    kVotingMode,
    kStaging,
    kLanding,
    kChecking,
    kLocking,
    kVerifying,
    kApplying,
    kFencing,
    kFinishing
  };

  void on_compute(const port::ComputeDone& done, Outbox& out);
  void on_batch(const port::BatchDone& done, Outbox& out);
  void begin(Outbox& out);
  void stage_payload(UpdateMode mode, Outbox& out);
  void vote(Outbox& out);
  void on_applied(const port::ComputeDone& done, Outbox& out);
  void on_fenced(const port::ComputeDone& done, Outbox& out);
  void end(Outbox& out);
  void note_state(port::ServeState state, Outbox& out) const;

  bool serves_ = false;
  UpdateMember member_;
  Stage stage_ = Stage::kNone;
  bool quarantined_ = false;
  bool wants_write_ = false;             // The server was asked for, or gave, the write.
  UpdateMode mode_ = UpdateMode::kFull;  // Of the present attempt, as decided by all.
  std::uint64_t landed_ = 0;             // Low word of the digest of what arrived.
  std::uint64_t received_ = 0;           // Bytes.
  std::uint64_t written_ = 0;            // Tensors.
  std::uint64_t tensors_ = 0;
  Digest128 held_;  // Weights this rank holds.
};

}  // namespace areal::proto
