// What senders and receivers of weights have in common: connecting, refusing what is stale, leaving cleanly.
//
// A part of both machines (update_sender.h, update_receiver.h), not a machine of its own. Phases run kIdle ->
// kConnecting -> kConnected -> kPrepared -> kExecuting -> kExecuted -> (commit) kConnected. A failure inside an attempt
// is answered once and waits in kFailed for the gateway's AbortUpdate, which ends both groups; after that only a new
// epoch helps. A repeated request is answered by the Callee; an attempt that was entered, or an older one, is refused.
// The end of an epoch that is not here is answered at once and ends nothing. Not thread-safe.
#pragma once
#include <memory>
#include <optional>

#include "engine/proto/callee.h"
#include "engine/proto/cluster.h"
#include "engine/proto/delta_policy.h"
#include "engine/proto/input.h"
#include "engine/proto/member_groups.h"
#include "engine/proto/member_plan.h"
#include "engine/proto/reconstruct_plan.h"
#include "engine/proto/waits.h"

namespace areal::proto {

enum class MemberPhase : std::uint8_t {
  kIdle,
  kConnecting,
  kConnected,
  kPrepared,
  kExecuting,
  kExecuted,
  kFailed,
  kEnding
};

struct AttemptKey {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  constexpr auto operator<=>(const AttemptKey&) const = default;
  AREAL_FIELDS(epoch, version, attempt)
};

// Whether a rank in `phase` that prepared `prepared` may enter the collectives of `asked`. The product: once, and only
// what was prepared.
using EnterPolicy = bool (*)(MemberPhase phase, const AttemptKey& prepared, const AttemptKey& asked);
constexpr bool enter_once(MemberPhase phase, const AttemptKey& prepared, const AttemptKey& asked) {
  return phase == MemberPhase::kPrepared && prepared == asked;
}

struct MemberOptions {
  Role role = Role::kTrainer;
  std::uint32_t role_rank = 0;   // train_rank, or infer_rank inside the engine.
  std::uint32_t role_world = 0;  // T, or E.
  EngineId engine;
  std::shared_ptr<const MemberPlan> plan;
  Digest128 meta;  // Of the parameters it reports.
  std::uint64_t staging_bytes = 0;
  std::uint64_t gradient_bytes = 0;  // A trainer's; given up during an update.
  // Deltas: whether ranks vote, and a trainer's windows and copies (null on receivers).
  bool delta = false;
  std::uint64_t anchor_interval = 0;
  std::shared_ptr<const ReconstructPlan> reconstruct;
  Duration init_timeout{300'000'000'000};
  Duration update_timeout{120'000'000'000};
  RepeatPolicy repeats = never_repeat;
  EnterPolicy may_enter = enter_once;
  DeltaPolicies policies{};
};

// What an attempt is asked to be. kDelta: may be one, if nobody wants it full.
struct AttemptMode {
  UpdateMode mode = UpdateMode::kFull;
  FullReason reason = FullReason::kNone;
  Version base = 0;
  AREAL_FIELDS(mode, reason, base)
};

// What is asked of the compute engine besides the attempt.
struct ComputeWish {
  std::uint64_t seed = 0;
  std::uint64_t amount = 0;
  std::uint64_t rate = port::kNoRate;
};

// What is reduced or voted on.
struct MeetingWish {
  port::BatchKind kind = port::BatchKind::kBarrier;
  MeetingKind meeting = MeetingKind::kFinish;
  std::uint64_t value = 0;
  std::uint64_t count = 0;
};

// What an input meant, for the side that holds the member.
struct MemberEvent {
  enum class What : std::uint8_t {
    kNone,       // Dealt with, or nobody's.
    kEntered,    // The collectives of attempt() were entered: do the side's part.
    kStaged,     // Staging memory is there.
    kBatch,      // The awaited batch ended well; see batch.
    kCompute,    // The running operation ended; see compute.
    kCommit,     // Make attempt() the current version, then call commit().
    kEnded,      // An abort or teardown has come to its end: call finish_end().
    kConnected,  // The groups of a new epoch are ready.
  };
  What what = What::kNone;
  port::BatchDone batch;
  port::ComputeDone compute;
};

class UpdateMember {
 public:
  explicit UpdateMember(MemberOptions options);

  MemberEvent on_input(const Input& input, Outbox& out);

  // The model is loaded: reports may be answered now.
  void set_loaded(Outbox& out);
  // Answers Commit; attempt() is the current version.
  void commit(Outbox& out);
  // Answers the abort or teardown; `quarantined`: the weights this rank holds are unproven.
  void finish_end(bool quarantined, Outbox& out);
  // The attempt failed here: answers Execute, then waits for the abort.
  void fail(Outcome outcome, NodeId peer, Outbox& out);
  // The attempt is done here up to the commit: answers Execute.
  void succeed(std::uint64_t bytes, UpdateMode mode, FullReason reason, Outbox& out);

  void reserve_staging(Outbox& out);
  void release_staging(Outbox& out);
  void start_compute(port::ComputeKind what, Outbox& out) { start_compute(what, {}, out); }
  void start_compute(port::ComputeKind what, const ComputeWish& wish, Outbox& out);
  // Posts the next batch of the payload, a pass or one of its two rounds; false when all are done. `updates`: what
  // the counts before it said that follows.
  bool post_next(UpdateMode mode, std::uint64_t updates, Outbox& out);
  // With all ranks.
  void meet(const MeetingWish& wish, Outbox& out) { meet_in(control_group(groups_.epoch()), wish, out); }
  // With all training ranks.
  void meet_trainers(const MeetingWish& wish, Outbox& out) { meet_in(train_group(groups_.epoch()), wish, out); }
  // Posts the reductions of one window with each set of copies, two a parameter: its correction and its status.
  void post_reductions(std::uint32_t window, std::uint64_t contributed, bool force, Outbox& out);
  // Batches that were posted and have not ended.
  [[nodiscard]] std::size_t pending() const { return batches_.size(); }

  [[nodiscard]] MemberPhase phase() const { return phase_; }
  [[nodiscard]] const AttemptKey& attempt() const { return attempt_; }
  [[nodiscard]] const AttemptMode& asked() const { return asked_; }
  [[nodiscard]] const MemberOptions& options() const { return options_; }
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] std::uint32_t rank() const { return groups_.init().rank; }
  // The gateway says that weights as loaded are proven in this epoch.
  [[nodiscard]] bool as_loaded() const { return groups_.init().as_loaded; }
  // The teardown being answered said that this rank's engine lost a rank.
  [[nodiscard]] bool told_unproven() const { return told_unproven_; }
  void list_waits(WaitList& waits) const;

  AREAL_FIELDS(phase_, loaded_, version_, attempt_, newest_, groups_, callee_, meta_key_, init_key_, execute_key_,
               commit_key_, end_key_, end_is_abort_, told_unproven_, next_op_, running_op_, next_buffer_, staging_,
               releasing_, posted_, batches_, asked_)

 private:
  using What = MemberEvent::What;

  MemberEvent on(const port::MessageIn& in, Outbox& out);
  MemberEvent on(const port::TimerFired& in, Outbox& out);
  MemberEvent on(const port::GroupJoined& in, Outbox& out);
  MemberEvent on(const port::BatchDone& in, Outbox& out);
  MemberEvent on(const port::GroupAborted& in, Outbox& out);
  MemberEvent on(const port::ComputeDone& in, Outbox& out);
  MemberEvent on(const port::BufferReady& in, Outbox& out);
  MemberEvent on(const port::BufferReleased& in, Outbox& out);

  void on_request(const port::MessageIn& in, const ReportMeta& asked, Outbox& out);
  void on_request(const port::MessageIn& in, const InitGroups& asked, Outbox& out);
  void on_request(const port::MessageIn& in, const Prepare& asked, Outbox& out);
  MemberEvent on_request(const port::MessageIn& in, const Execute& asked, Outbox& out);
  MemberEvent on_request(const port::MessageIn& in, const Commit& asked, Outbox& out);
  MemberEvent begin_end(const port::MessageIn& in, Epoch epoch, bool abort, Outbox& out);

  void refuse(const port::MessageIn& in, Refusal reason, std::uint64_t detail, Outbox& out) const;
  void answer_meta(Outbox& out);
  void note_plan(Outbox& out) const;
  void meet_in(GroupId group, const MeetingWish& wish, Outbox& out);
  void finish_connect(Outcome outcome, NodeId peer, Outbox& out);
  MemberEvent check_end(Outbox& out);

  MemberOptions options_;
  MemberPhase phase_ = MemberPhase::kIdle;
  bool loaded_ = false;
  Version version_ = 0;  // Committed.
  AttemptKey attempt_;   // Prepared or running.
  AttemptKey newest_;    // The latest one ever prepared.
  MemberGroups groups_;
  Callee callee_;
  std::optional<RequestKey> meta_key_;  // Asked before the model was loaded.
  std::optional<RequestKey> init_key_;
  std::optional<RequestKey> execute_key_;
  std::optional<RequestKey> commit_key_;
  std::optional<RequestKey> end_key_;
  bool end_is_abort_ = false;
  bool told_unproven_ = false;
  std::uint64_t next_op_ = 0;
  OpId running_op_;  // 0: none.
  std::uint64_t next_buffer_ = 0;
  BufferId staging_;  // 0: none.
  bool releasing_ = false;
  std::uint32_t posted_ = 0;      // Batches of the payload.
  std::vector<BatchId> batches_;  // Awaited; few.
  AttemptMode asked_;             // Of the attempt that is executed.
};

}  // namespace areal::proto
