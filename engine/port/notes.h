// The probes: what judges, tables and people need to know and no message carries.
//
// A protocol appends a Note effect with one of these as its body. Judges and the recorder read them from the trace; no
// protocol ever does.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/record.h"
#include "engine/port/types.h"

namespace areal::port {

enum class PairState : std::uint8_t { kAbsent, kReserved, kRollingBack, kConnected, kUpdating, kBroken, kTearingDown };
constexpr std::array<std::string_view, 7> enum_names(PairState /*tag*/) {
  return {"absent", "reserved", "rolling_back", "connected", "updating", "broken", "tearing_down"};
}

enum class UpdateMode : std::uint8_t { kFull, kDelta };
constexpr std::array<std::string_view, 2> enum_names(UpdateMode /*tag*/) { return {"full", "delta"}; }

// Why an update is full: the gateway's own reason, else that of the lowest rank that has one of its own. kNoDelta:
// deltas are off. kPeerRank is never an update's reason: only that of a rank which has no other than that somebody else
// wants a full update. Source: spec/transfer.md 1.8.
enum class FullReason : std::uint8_t {
  kNone,
  kNoDelta,
  kNotSeeded,
  kPeerLost,
  kRetry,
  kBaseMismatch,
  kRecovered,
  kAnchorInterval,
  kInitialFull,
  kInversionError,
  kInversionInfeasible,
  kCommitFailed,
  kPeerRank
};
constexpr std::array<std::string_view, 13> enum_names(FullReason /*tag*/) {
  return {"none",
          "no_delta",
          "not_seeded",
          "peer_lost",
          "retry",
          "base_mismatch",
          "recovered",
          "anchor_interval",
          "initial_full",
          "adamw_inversion_error",
          "adamw_inversion_infeasible",
          "external_commit_failed",
          "peer_rank_fallback"};
}

enum class Role : std::uint8_t { kTrainer, kEngine, kGateway, kController, kRouter, kStore, kGuard };
constexpr std::array<std::string_view, 7> enum_names(Role /*tag*/) {
  return {"trainer", "engine", "gateway", "controller", "router", "store", "guard"};
}

enum class ServeState : std::uint8_t { kLoading, kServing, kPaused, kQuarantined };
constexpr std::array<std::string_view, 4> enum_names(ServeState /*tag*/) {
  return {"loading", "serving", "paused", "quarantined"};
}

enum class PauseMode : std::uint8_t { kAbortResubmit, kInPlace };
constexpr std::array<std::string_view, 2> enum_names(PauseMode /*tag*/) { return {"abort_resubmit", "in_place"}; }

// The phases of one training step, in the order of the training loop; then those of a repair, which interrupts
// collecting to give engines the published version again that do not hold it any more; then the checkpoint, which comes
// between training and the pause, and a recovery, which may interrupt any phase.
enum class LoopPhase : std::uint8_t {
  kCollect,
  kTrain,
  kPauseRollout,
  kPauseGeneration,
  kUpdate,
  kContinueGeneration,
  kSetVersion,
  kClear,
  kResume,
  kDone,
  kRepairPause,
  kRepairUpdate,
  kRepairAnnounce,
  kCheckpoint,
  kRecover
};
constexpr std::array<std::string_view, 15> enum_names(LoopPhase /*tag*/) {
  return {
      "collect", "train",  "pause_rollout", "pause_generation", "update",        "continue_generation", "set_version",
      "clear",   "resume", "done",          "repair_pause",     "repair_update", "repair_announce",     "checkpoint",
      "recover"};
}

enum class SegmentEnd : std::uint8_t { kStop, kLength, kAborted, kFailed, kFrozen };
constexpr std::array<std::string_view, 5> enum_names(SegmentEnd /*tag*/) {
  return {"stop", "length", "aborted", "failed", "frozen"};
}

enum class ReceiptKind : std::uint8_t { kWeights, kPublish, kDrain };
constexpr std::array<std::string_view, 3> enum_names(ReceiptKind /*tag*/) { return {"weights", "publish", "drain"}; }

enum class LeaseState : std::uint8_t { kLeased, kBound, kReleased };
constexpr std::array<std::string_view, 3> enum_names(LeaseState /*tag*/) { return {"leased", "bound", "released"}; }

enum class RunEnd : std::uint8_t { kCompleted, kUpdateFailed, kConnectFailed, kRecoveryFailed };
constexpr std::array<std::string_view, 4> enum_names(RunEnd /*tag*/) {
  return {"completed", "update_failed", "connect_failed", "recovery_failed"};
}

// ---- Pair and update (said by the gateway) ----

struct PairChanged {
  Epoch epoch = 0;
  PairState state = PairState::kAbsent;
  Version version = 0;  // The last published one.
  AREAL_RECORD(0x0301, "pair_changed", epoch, state, version)
};
struct UpdateStarted {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  UpdateMode mode = UpdateMode::kFull;
  FullReason reason = FullReason::kNone;
  AREAL_RECORD(0x0302, "update_started", epoch, version, attempt, mode, reason)
};
// One attempt ended, well or not; `peer` is the rank that it failed on, if one is known.
struct UpdateEnded {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  Outcome outcome = Outcome::kOk;
  NodeId peer{};
  AREAL_RECORD(0x0303, "update_ended", epoch, version, attempt, outcome, peer)
};
// Everyone may use this version: every member applied, fenced and acknowledged it.
struct VersionPublished {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  UpdateMode mode = UpdateMode::kFull;
  FullReason reason = FullReason::kNone;
  std::uint64_t bytes = 0;  // Received by all engines together.
  AREAL_RECORD(0x0304, "version_published", epoch, version, attempt, mode, reason, bytes)
};
// A full update seeded a base for later deltas.
struct AnchorSet {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  FullReason reason = FullReason::kNone;
  AREAL_RECORD(0x0305, "anchor_set", epoch, version, attempt, reason)
};

// ---- Plan and transfer (said by transfer ranks) ----

// What this rank's plan covers. `expected` counts the elements of its own shards (receivers) or of what it owns to
// send.
struct PlanBuilt {
  Epoch epoch = 0;
  std::uint32_t rank = 0;  // Transfer rank.
  bool sends = false;
  std::uint64_t operations = 0;
  std::uint64_t expected = 0;
  std::uint64_t covered = 0;     // Elements written at least once.
  std::uint64_t duplicates = 0;  // Elements written more than once.
  Digest128 digest{};
  AREAL_RECORD(0x0306, "plan_built", epoch, rank, sends, operations, expected, covered, duplicates, digest)
};
// The ordered operations between this rank and one peer; equal on both sides.
struct PlanPeer {
  Epoch epoch = 0;
  std::uint32_t sender = 0;
  std::uint32_t receiver = 0;
  bool sends = false;  // Said by the sender.
  std::uint64_t operations = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  Digest128 digest{};
  AREAL_RECORD(0x0307, "plan_peer", epoch, sender, receiver, sends, operations, elements, bytes, digest)
};
// This rank entered the collectives of an attempt.
struct CollectiveEntered {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;
  AREAL_RECORD(0x0308, "collective_entered", epoch, version, attempt, rank)
};
// What all engines together should hold from a sender then, changed or not: the sum over live elements, once for each
// receiver and under every name, aliases too, so that it does not depend on layout.
struct Exported {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;
  std::uint64_t elements = 0;  // That left, once for each receiver; 0 in a delta, whose DeltaPacked counts them.
  Digest128 digest{};
  AREAL_RECORD(0x0309, "exported", epoch, version, attempt, rank, elements, digest)
};
struct ApplyStarted {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;
  EngineId engine{};
  AREAL_RECORD(0x030A, "apply_started", epoch, version, attempt, rank, engine)
};
// Weights that a receiver holds after its device fence: the same sum over its live elements.
struct Applied {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;
  EngineId engine{};
  std::uint64_t written = 0;   // Tensors.
  std::uint64_t expected = 0;  // Tensors.
  Digest128 digest{};
  AREAL_RECORD(0x030B, "applied", epoch, version, attempt, rank, engine, written, expected, digest)
};
// A receiver made `version` current (state kServing or kPaused) or refuses to serve (kQuarantined).
struct WeightsState {
  EngineId engine{};
  std::uint32_t rank = 0;  // Infer rank inside the engine.
  ServeState state = ServeState::kLoading;
  Version version = 0;
  Digest128 digest{};  // Of the weights this rank holds.
  AREAL_RECORD(0x030C, "weights_state", engine, rank, state, version, digest)
};

// ---- Rollout ----

// An engine's server made tokens: the truth. `digest` is of the weights that made them.
struct Decoded {
  SampleId sample{};
  EngineId engine{};
  Version version = 0;
  std::uint64_t tokens = 0;
  SegmentEnd end = SegmentEnd::kStop;
  Digest128 digest{};
  AREAL_RECORD(0x030D, "decoded", sample, engine, version, tokens, end, digest)
};
// What the rollout pool stored of a segment: the label that training will see.
struct SegmentStored {
  SampleId sample{};
  EngineId engine{};
  Version pinned = 0;  // Published version when the segment was sent.
  Version label = 0;   // Recorded with the tokens.
  std::uint64_t tokens = 0;
  SegmentEnd end = SegmentEnd::kStop;
  Digest128 digest{};
  AREAL_RECORD(0x030E, "segment_stored", sample, engine, pinned, label, tokens, end, digest)
};
struct Routed {
  SampleId sample{};
  EngineId engine{};
  Version version = 0;  // The published version the router knows.
  AREAL_RECORD(0x030F, "routed", sample, engine, version)
};
struct EligibleChanged {
  EngineId engine{};
  bool eligible = false;
  Version version = 0;
  AREAL_RECORD(0x0310, "eligible_changed", engine, eligible, version)
};
struct PauseChanged {
  EngineId engine{};
  bool paused = false;
  PauseMode mode = PauseMode::kAbortResubmit;
  std::uint32_t running = 0;  // Requests that were running when it changed.
  AREAL_RECORD(0x0311, "pause_changed", engine, paused, mode, running)
};
// A sample group was admitted; the numbers are those of the decision (before it counts itself).
struct Admitted {
  SampleGroupId group{};
  Version version = 0;
  std::int64_t running = 0;
  std::int64_t accepted = 0;
  std::int64_t max_concurrent = 0;
  std::int64_t batch_size = 0;
  std::int64_t staleness = 0;
  AREAL_RECORD(0x0312, "admitted", group, version, running, accepted, max_concurrent, batch_size, staleness)
};
struct GroupFinished {
  SampleGroupId group{};
  bool accepted = false;
  std::uint32_t samples = 0;
  std::uint64_t tokens = 0;
  Version oldest = 0;  // Label.
  Version newest = 0;
  AREAL_RECORD(0x0313, "group_finished", group, accepted, samples, tokens, oldest, newest)
};
// A sample group went into a training batch.
struct GroupConsumed {
  SampleGroupId group{};
  TrainBatchId batch{};
  Version version = 0;  // Of the trainer while it trains on it.
  Version oldest = 0;
  AREAL_RECORD(0x0314, "group_consumed", group, batch, version, oldest)
};

// ---- Training loop ----

struct PhaseEntered {
  std::uint64_t step = 0;
  LoopPhase phase = LoopPhase::kCollect;
  Version version = 0;
  AREAL_RECORD(0x0315, "phase_entered", step, phase, version)
};
struct VersionSet {
  Role role = Role::kTrainer;
  Version version = 0;
  AREAL_RECORD(0x0316, "version_set", role, version)
};
struct StepTrained {
  std::uint64_t step = 0;
  Version version = 0;  // The version whose weights now exist in the trainer.
  std::uint32_t rank = 0;
  Digest128 digest{};                 // Of the rank's weights in wire dtype, each element once.
  std::uint64_t optimizer_steps = 0;  // 0: skipped, some gradient was not finite.
  AREAL_RECORD(0x0317, "step_trained", step, version, rank, digest, optimizer_steps)
};
struct RunEnded {
  RunEnd end = RunEnd::kCompleted;
  std::uint64_t step = 0;
  Version version = 0;
  AREAL_RECORD(0x0318, "run_ended", end, step, version)
};

// ---- Tensor store ----

struct ShardStored {
  ShardId shard{};
  std::uint64_t bytes = 0;
  AREAL_RECORD(0x0319, "shard_stored", shard, bytes)
};
struct ShardFetched {
  ShardId shard{};
  TrainBatchId batch{};
  AREAL_RECORD(0x031A, "shard_fetched", shard, batch)
};
// A holder dropped a batch's shards; `left` is how many of them it still holds.
struct ShardsDropped {
  TrainBatchId batch{};
  std::uint64_t count = 0;
  std::uint64_t left = 0;
  AREAL_RECORD(0x031B, "shards_dropped", batch, count, left)
};
// Something was proven to have ended everywhere it had to: acknowledged weights, a published version, a drained batch.
struct Receipt {
  ReceiptKind kind = ReceiptKind::kWeights;
  std::uint64_t subject = 0;  // Version, or training batch.
  Role role = Role::kEngine;
  std::uint64_t count = 0;    // Elements, members or shards.
  std::uint64_t holders = 0;  // Sources and consumers that were asked.
  Digest128 digest{};
  AREAL_RECORD(0x031C, "receipt", kind, subject, role, count, holders, digest)
};

// ---- Deltas (said by trainers) ----

// A rank's vote of an update: its own reason, and what all of them came to.
struct DeltaVoted {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;  // train_rank.
  FullReason reason = FullReason::kNone;
  UpdateMode mode = UpdateMode::kFull;  // What all ranks of both worlds decided.
  Version base = 0;                     // Of the tracker; 0: not seeded.
  std::uint64_t since_anchor = 0;       // Committed deltas since the last full update.
  AREAL_RECORD(0x0320, "delta_voted", epoch, version, attempt, rank, reason, mode, base, since_anchor)
};
// One window of a reconstruction was reduced and compared. `pending` counts reductions that were under way when the
// window was handed on: none may be.
struct WindowCompared {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;  // train_rank.
  std::uint32_t window = 0;
  std::uint64_t reductions = 0;  // Of the window, two a parameter; none is posted where nobody else has a copy.
  std::uint64_t pending = 0;
  std::uint64_t contributed = 0;
  std::uint64_t changed = 0;  // Elements.
  bool full = false;
  AREAL_RECORD(0x0321, "window_compared", epoch, version, attempt, rank, window, reductions, pending, contributed,
               changed, full)
};
// What a sender's delta holds. `missed`: elements whose bytes differ from those the engines hold and that it does not
// send.
struct DeltaPacked {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::uint32_t rank = 0;      // train_rank.
  std::uint64_t elements = 0;  // Sent, over all receivers.
  std::uint64_t missed = 0;
  AREAL_RECORD(0x0322, "delta_packed", epoch, version, attempt, rank, elements, missed)
};
// The tracker of a rank moved, or was told to ask for a full update next.
struct TrackerMoved {
  std::uint32_t rank = 0;  // train_rank.
  Epoch epoch = 0;
  Attempt attempt = 0;
  UpdateMode mode = UpdateMode::kFull;  // Of the update that moved it.
  Version base = 0;
  std::uint64_t since_anchor = 0;
  std::uint64_t interval = 0;
  FullReason forced = FullReason::kNone;
  AREAL_RECORD(0x0323, "tracker_moved", rank, epoch, attempt, mode, base, since_anchor, interval, forced)
};
// Gradient memory of a rank was given up for an update, or is there again.
struct GradientsChanged {
  std::uint32_t rank = 0;  // train_rank.
  bool held = false;
  AREAL_RECORD(0x0324, "gradients_changed", rank, held)
};

// ---- Training world and recovery ----

// The ranks of training meet under a new training epoch: at the start, and after every recovery.
struct TrainingWorldChanged {
  Epoch training_epoch = 0;
  Version version = 0;     // That its ranks hold.
  std::uint64_t step = 0;  // That comes next.
  AREAL_RECORD(0x0325, "training_world_changed", training_epoch, version, step)
};
// A rank wrote a checkpoint, or read one back. `digest` is of weights, moments and step counters.
struct CheckpointRank {
  Epoch training_epoch = 0;
  Version version = 0;
  std::uint32_t rank = 0;  // train_rank.
  std::uint32_t slot = 0;
  bool restored = false;
  Digest128 digest{};
  AREAL_RECORD(0x0326, "checkpoint_rank", training_epoch, version, rank, slot, restored, digest)
};
// The info of a checkpoint is on stable storage (it refers to nothing that is missing), or was read back.
struct CheckpointInfo {
  Epoch training_epoch = 0;
  Version version = 0;
  std::uint64_t step = 0;  // That comes next.
  std::uint32_t slot = 0;
  bool restored = false;
  std::int64_t accepted = 0;  // Sample groups that the staleness capacity counts.
  Digest128 digest{};         // Of all ranks together.
  AREAL_RECORD(0x0327, "checkpoint_info", training_epoch, version, step, slot, restored, accepted, digest)
};

// ---- Processes ----

struct LeaseChanged {
  HostId host{};
  std::uint16_t port = 0;
  LeaseState state = LeaseState::kLeased;
  NodeId holder{};
  Incarnation incarnation = 0;
  AREAL_RECORD(0x031D, "lease_changed", host, port, state, holder, incarnation)
};
struct ProcessChanged {
  NodeId node{};
  Incarnation incarnation = 0;
  bool alive = false;
  std::uint16_t port = 0;
  AREAL_RECORD(0x031E, "process_changed", node, incarnation, alive, port)
};
// A request was refused; `what` is the kind of the message, `reason` the rule it broke.
enum class Refusal : std::uint8_t {
  kStaleAttempt,
  kWrongEpoch,
  kNotConnected,
  kNotInitialized,
  kBusy,
  kVersionOrder,
  kPlanMismatch,
  kRankMap,
  kUnsynced,
  kUnknown
};
constexpr std::array<std::string_view, 10> enum_names(Refusal /*tag*/) {
  return {"stale_attempt", "wrong_epoch",   "not_connected", "not_initialized", "busy",
          "version_order", "plan_mismatch", "rank_map",      "unsynced",        "unknown"};
}
struct Refused {
  KindId what = 0;
  Refusal reason = Refusal::kUnknown;
  NodeId from{};
  std::uint64_t detail = 0;
  AREAL_RECORD(0x031F, "refused", what, reason, from, detail)
};

void add_note_kinds(KindTable& kinds);

}  // namespace areal::port
