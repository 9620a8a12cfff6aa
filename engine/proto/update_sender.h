// One training rank's part of a weight update: find out what changed, vote, pack what the plan says it owns, send it,
// meet the others.
//
// Step by step (spec/transfer.md 1.9): gradient memory is given up; the synced state is captured; MAX vote 1 of the
// training ranks, whether anybody needs a full update; if nobody does, the last step is reconstructed (reconstruct.h);
// MAX vote 2; MIN vote of all ranks, receivers too: a delta only if everybody can. Then staging memory, pack (cast to
// the wire dtype), one send batch a wire dtype, or two in a delta, the verifying sum and the final barrier. The sum
// adds what left every sender and subtracts what every receiver holds: it is zero exactly if all bytes arrived, and
// nobody applies otherwise. Gradient memory is there again before the attempt is answered, and before its end is.
//
// Only the commit moves the tracker and what is recorded of the receivers; an end of the epoch asks for a full update.
// With deltas off there are no votes and nothing is captured.
#pragma once
#include "engine/delta/tracker.h"
#include "engine/proto/reconstruct.h"
#include "engine/proto/update_member.h"

namespace areal::proto {

class UpdateSender {
 public:
  static constexpr std::string_view kName = "update_sender";

  explicit UpdateSender(MemberOptions options);

  void step(const Input& input, Outbox& out);

  [[nodiscard]] const UpdateMember& member() const { return member_; }
  [[nodiscard]] const delta::DeltaTracker& tracker() const { return tracker_; }
  void list_waits(WaitList& waits) const;

  AREAL_FIELDS(member_, tracker_, reconstruct_, stage_, loaded_, gradients_, next_gradients_, gradients_held_,
               gradients_move_, gradient_tries_, rate_, known_, captured_, own_, mode_, packed_)

 private:
  enum class Stage : std::uint8_t {
    kNone,
    kGivingUpGradients,
    kCapturing,
    kVotingNeed,
    kReconstructing,
    kVotingMasks,
    kVotingMode,
    kStaging,
    kPacking,
    kSending,
    kVerifying,
    kFinishing,
    kRestoring,
    kCommitting,
    kEnding
  };

  void on_tell(const Record& body);
  void on_compute(const port::ComputeDone& done, Outbox& out);
  void on_batch(const port::BatchDone& done, Outbox& out);

  // Gradient memory. Both are followed by gradients_settled().
  bool on_gradients(const Input& input, Outbox& out);
  void give_up_gradients(Outbox& out);
  void restore_gradients(Outbox& out);
  void gradients_settled(Outbox& out);
  void finish_loading(Outbox& out);

  void begin(Outbox& out);
  void captured(const port::ComputeDone& done, Outbox& out);
  [[nodiscard]] FullReason reason_to_be_full() const;
  void vote(Stage stage, MeetingKind meeting, Outbox& out);
  void voted(const port::BatchDone& done, Outbox& out);
  void reconstructed(Outbox& out);
  void vote_mode(Outbox& out);
  void packed(const port::ComputeDone& done, Outbox& out);
  void count(CountMoment moment, Outbox& out);
  void commit(Outbox& out);
  void committed(const port::ComputeDone& done, Outbox& out);
  void end(Outbox& out);
  void note_tracker(FullReason forced, Outbox& out) const;

  UpdateMember member_;
  delta::DeltaTracker tracker_;
  Reconstruct reconstruct_;
  Stage stage_ = Stage::kNone;
  bool loaded_ = false;
  BufferId gradients_;  // 0: none was ever asked for.
  std::uint64_t next_gradients_ = 0;
  bool gradients_held_ = false;
  bool gradients_move_ = false;  // They were asked for or given up, and that has not ended.
  std::uint32_t gradient_tries_ = 0;
  std::uint64_t rate_ = port::kNoRate;       // That the last step used.
  std::uint64_t known_ = 0;                  // Parameters whose last synced state is recorded.
  FullReason captured_ = FullReason::kNone;  // Why the capture allows no delta.
  FullReason own_ = FullReason::kNone;       // This rank's reason of the present attempt.
  UpdateMode mode_ = UpdateMode::kFull;      // Of the present attempt, as decided by all.
  std::uint64_t packed_ = 0;                 // Low word of the digest of what left.
};

}  // namespace areal::proto
