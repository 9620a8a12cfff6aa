// The control messages between nodes and the tells between protocols of one node.
//
// A request is answered by the kind named beside it, under the same request id; `Ack` answers those that have nothing
// to say. Whoever gets a request twice answers twice and acts once (callee.h). Nothing here carries tensor bytes.
#pragma once
#include "engine/base/record.h"
#include "engine/port/notes.h"

namespace areal::proto {

using port::FullReason;
using port::Outcome;
using port::PauseMode;
using port::Refusal;
using port::Role;
using port::SegmentEnd;
using port::UpdateMode;

struct Ack {
  AREAL_RECORD(0x1001, "ack")
};

// ---- Pair and weight update: trainer's client -> gateway ----

struct ConnectRequest {  // -> ConnectReply
  AREAL_RECORD(0x1010, "connect_request")
};
struct ConnectReply {
  Outcome outcome = Outcome::kOk;
  Epoch epoch = 0;
  AREAL_RECORD(0x1011, "connect_reply", outcome, epoch)
};
struct UpdateRequest {  // -> UpdateReply
  Version version = 0;
  Epoch training_epoch = 0;  // A new one begins a new history: its first version may be one that was published before.
  AREAL_RECORD(0x1012, "update_request", version, training_epoch)
};
struct UpdateReply {
  Version version = 0;
  Outcome outcome = Outcome::kOk;
  Attempt attempt = 0;
  UpdateMode mode = UpdateMode::kFull;
  FullReason reason = FullReason::kNone;
  std::uint64_t bytes = 0;
  AREAL_RECORD(0x1013, "update_reply", version, outcome, attempt, mode, reason, bytes)
};
struct DisconnectRequest {  // -> Ack
  AREAL_RECORD(0x1014, "disconnect_request")
};

// ---- Gateway -> every transfer rank ----

struct ReportMeta {  // -> MetaReport
  AREAL_RECORD(0x1020, "report_meta")
};
struct MetaReport {
  Role role = Role::kTrainer;
  std::uint32_t rank = 0;  // train_rank, or infer_rank inside the engine.
  EngineId engine{};
  std::uint32_t world = 0;  // Training world, or ranks of one engine.
  Version version = 0;      // Of the weights it holds.
  std::uint64_t tensors = 0;
  Digest128 meta{};  // Of the names, shapes, dtypes and shards it reports.
  AREAL_RECORD(0x1021, "meta_report", role, rank, engine, world, version, tensors, meta)
};
struct InitGroups {  // -> InitDone
  Epoch epoch = 0;
  std::uint32_t rank = 0;         // Transfer rank.
  std::uint32_t world = 0;        // W = I + T.
  std::uint32_t infer_world = 0;  // I.
  std::uint32_t engines = 0;      // N.
  std::uint16_t port = 0;         // Of the rendezvous master, leased on the host of transfer rank 0.
  bool as_loaded = false;         // Nothing was published and nothing written: loaded weights are the proven ones.
  AREAL_RECORD(0x1022, "init_groups", epoch, rank, world, infer_world, engines, port, as_loaded)
};
struct InitDone {
  Epoch epoch = 0;
  Outcome outcome = Outcome::kOk;
  NodeId peer{};
  AREAL_RECORD(0x1023, "init_done", epoch, outcome, peer)
};
// The update handle: a rank that has seen this or a later attempt, or holds another epoch, refuses it.
struct Prepare {  // -> Prepared
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  Version base = 0;
  UpdateMode mode = UpdateMode::kFull;
  AREAL_RECORD(0x1024, "prepare", epoch, version, attempt, base, mode)
};
struct Prepared {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  Outcome outcome = Outcome::kOk;
  Version base = 0;            // Version of the weights it holds.
  std::uint64_t elements = 0;  // It will send or receive, over all passes.
  std::uint64_t bytes = 0;
  DType dtype = DType::kBf16;  // Of the first pass.
  std::uint64_t tensors = 0;
  AREAL_RECORD(0x1025, "prepared", epoch, version, attempt, outcome, base, elements, bytes, dtype, tensors)
};
// Enter the collectives: move, verify, apply, fence, meet.
struct Execute {  // -> Executed
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  UpdateMode mode = UpdateMode::kFull;  // kDelta: all receivers have proven `base`; the ranks vote.
  FullReason reason = FullReason::kNone;
  Version base = 0;
  AREAL_RECORD(0x1026, "execute", epoch, version, attempt, mode, reason, base)
};
struct Executed {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  Outcome outcome = Outcome::kOk;
  NodeId peer{};            // Whom it failed on, if known.
  std::uint64_t bytes = 0;  // Received.
  UpdateMode mode = UpdateMode::kFull;
  FullReason reason = FullReason::kNone;  // A sender's own, or kPeerRank.
  AREAL_RECORD(0x1027, "executed", epoch, version, attempt, outcome, peer, bytes, mode, reason)
};
// Make the applied version the current one.
struct Commit {  // -> Committed
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  AREAL_RECORD(0x1028, "commit", epoch, version, attempt)
};
struct Committed {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  Outcome outcome = Outcome::kOk;  // kRefused: it has not executed this attempt.
  AREAL_RECORD(0x1029, "committed", epoch, version, attempt, outcome)
};
// End the attempt and both groups; a receiver that had begun to apply is quarantined.
struct AbortUpdate {  // -> UpdateAborted
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  AREAL_RECORD(0x102A, "abort_update", epoch, version, attempt)
};
struct UpdateAborted {
  Epoch epoch = 0;
  bool quarantined = false;
  AREAL_RECORD(0x102B, "update_aborted", epoch, quarantined)
};
// End the epoch; a receiver whose engine lost a rank must not serve until a full update reached it.
struct Teardown {  // -> TornDown
  Epoch epoch = 0;
  bool unproven = false;
  AREAL_RECORD(0x102C, "teardown", epoch, unproven)
};
struct TornDown {
  Epoch epoch = 0;
  AREAL_RECORD(0x102D, "torn_down", epoch)
};

// ---- Membership: guard -> gateway and router ----

struct WorkerExited {  // -> Ack
  NodeId node{};
  Incarnation incarnation = 0;
  AREAL_RECORD(0x1030, "worker_exited", node, incarnation)
};
struct WorkerStarted {  // -> Ack
  NodeId node{};
  Incarnation incarnation = 0;
  std::uint16_t port = 0;
  AREAL_RECORD(0x1031, "worker_started", node, incarnation, port)
};
// Gateway -> guard of the host of transfer rank 0: a port for the rendezvous master.
struct ReservePort {  // -> PortReserved
  Epoch epoch = 0;
  AREAL_RECORD(0x1032, "reserve_port", epoch)
};
struct PortReserved {
  Epoch epoch = 0;
  Outcome outcome = Outcome::kOk;
  std::uint16_t port = 0;
  AREAL_RECORD(0x1033, "port_reserved", epoch, outcome, port)
};
struct ReturnPort {  // -> Ack
  Epoch epoch = 0;
  std::uint16_t port = 0;
  AREAL_RECORD(0x1034, "return_port", epoch, port)
};

// ---- Membership: gateway -> router, gateway -> training loop ----

// All ranks of the engine, in the incarnations that the sum names, have committed the version (0: have it as loaded). A
// sum of 0 takes the membership back.
struct EngineMember {  // -> Ack
  EngineId engine{};
  Version version = 0;
  std::uint64_t incarnations = 0;  // Sum over the engine's ranks.
  Epoch training_epoch = 0;        // Of the update that moved it.
  AREAL_RECORD(0x1035, "engine_member", engine, version, incarnations, training_epoch)
};
// The pair is connected again, but an engine that lost a rank does not hold the published version any more.
struct EnginesLost {  // -> Ack
  Version version = 0;
  AREAL_RECORD(0x1036, "engines_lost", version)
};

// ---- Rollout: pool -> router, pool -> engine server, controller -> engine server ----

struct RouteRequest {  // -> RouteReply
  SampleId sample{};
  AREAL_RECORD(0x1040, "route_request", sample)
};
struct RouteReply {
  SampleId sample{};
  Outcome outcome = Outcome::kOk;  // kRefused: no engine holds the published version now.
  EngineId engine{};
  Version version = 0;  // The published version, which the caller pins.
  AREAL_RECORD(0x1041, "route_reply", sample, outcome, engine, version)
};
struct GenerateRequest {  // -> GenerateReply
  SampleId sample{};
  Version pinned = 0;
  std::uint64_t produced = 0;  // Tokens of earlier segments, part of the prompt now.
  std::uint64_t budget = 0;    // Tokens that may still be made.
  AREAL_RECORD(0x1042, "generate_request", sample, pinned, produced, budget)
};
// The last segment of a request; `version` is the one that the engine served it with.
struct GenerateReply {
  SampleId sample{};
  SegmentEnd end = SegmentEnd::kStop;  // kFailed: nothing was made, ask elsewhere.
  std::uint64_t tokens = 0;
  Version version = 0;
  Digest128 digest{};  // Of the weights that made the tokens.
  AREAL_RECORD(0x1043, "generate_reply", sample, end, tokens, version, digest)
};
// A segment that ended because weights changed under a running request (in_place); more follows.
struct SegmentReport {  // -> Ack
  SampleId sample{};
  std::uint64_t tokens = 0;
  Version version = 0;
  Digest128 digest{};
  AREAL_RECORD(0x1044, "segment_report", sample, tokens, version, digest)
};
struct PauseEngine {  // -> EnginePaused
  PauseMode mode = PauseMode::kAbortResubmit;
  AREAL_RECORD(0x1045, "pause_engine", mode)
};
struct EnginePaused {
  Outcome outcome = Outcome::kOk;
  std::uint32_t running = 0;  // Requests that were running.
  AREAL_RECORD(0x1046, "engine_paused", outcome, running)
};
struct ContinueEngine {  // -> EngineContinued
  AREAL_RECORD(0x1047, "continue_engine")
};
struct EngineContinued {
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x1048, "engine_continued", outcome)
};
// Bookkeeping: the published version, for labels and routing. Has no side effect on requests. A version may be lower
// than the one before only under a later training epoch.
struct SetVersion {  // -> Ack
  Version version = 0;
  Epoch training_epoch = 0;
  AREAL_RECORD(0x1049, "set_version", version, training_epoch)
};

// ---- Training: controller -> train ranks ----

struct AssignShard {  // -> Ack
  TrainBatchId batch{};
  ShardId shard{};
  AREAL_RECORD(0x1050, "assign_shard", batch, shard)
};
struct TrainStep {  // -> StepDone
  std::uint64_t step = 0;
  Version version = 0;  // The version that the step makes.
  TrainBatchId batch{};
  std::uint32_t shards = 0;  // Assigned to this rank; 0 for ranks that are no data-parallel head.
  std::uint64_t seed = 0;    // Digest of the whole batch.
  Epoch training_epoch = 0;
  AREAL_RECORD(0x1051, "train_step", step, version, batch, shards, seed, training_epoch)
};
struct StepDone {
  std::uint64_t step = 0;
  Version version = 0;
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x1052, "step_done", step, version, outcome)
};

// ---- Training world: controller -> train ranks ----

// Meet the others under this training epoch; with `version` not 0, after reading it back from checkpoint slot `slot`.
// Whatever ran under an earlier training epoch is dropped.
struct JoinTraining {  // -> TrainingJoined
  Epoch training_epoch = 0;
  Version version = 0;
  std::uint32_t slot = 0;
  std::uint16_t port = 0;  // Of the rendezvous master.
  AREAL_RECORD(0x1053, "join_training", training_epoch, version, slot, port)
};
struct TrainingJoined {
  Epoch training_epoch = 0;
  Outcome outcome = Outcome::kOk;
  Digest128 digest{};  // Of what was read back.
  AREAL_RECORD(0x1054, "training_joined", training_epoch, outcome, digest)
};
struct SaveCheckpoint {  // -> CheckpointSaved
  Epoch training_epoch = 0;
  Version version = 0;
  std::uint32_t slot = 0;
  AREAL_RECORD(0x1055, "save_checkpoint", training_epoch, version, slot)
};
struct CheckpointSaved {
  Epoch training_epoch = 0;
  Version version = 0;
  Outcome outcome = Outcome::kOk;
  Digest128 digest{};
  AREAL_RECORD(0x1056, "checkpoint_saved", training_epoch, version, outcome, digest)
};

// The run is over: leave the group of this training epoch.
struct LeaveTraining {  // -> Ack
  Epoch training_epoch = 0;
  AREAL_RECORD(0x1057, "leave_training", training_epoch)
};

// ---- Tensor store ----

struct PutShard {  // -> Ack
  ShardId shard{};
  std::uint64_t bytes = 0;
  Digest128 digest{};
  AREAL_RECORD(0x1060, "put_shard", shard, bytes, digest)
};
struct FetchShard {  // -> ShardData
  ShardId shard{};
  TrainBatchId batch{};
  AREAL_RECORD(0x1061, "fetch_shard", shard, batch)
};
struct ShardData {
  ShardId shard{};
  Outcome outcome = Outcome::kOk;  // kRefused: no such shard.
  std::uint64_t bytes = 0;
  Digest128 digest{};
  AREAL_RECORD(0x1062, "shard_data", shard, outcome, bytes, digest)
};
struct DropShard {  // -> Dropped; to the source. Unknown shards count 0, which is success.
  ShardId shard{};
  TrainBatchId batch{};
  AREAL_RECORD(0x1063, "drop_shard", shard, batch)
};
struct DropBatch {  // -> Dropped; to every consumer head.
  TrainBatchId batch{};
  AREAL_RECORD(0x1064, "drop_batch", batch)
};
struct Dropped {
  TrainBatchId batch{};
  std::uint64_t count = 0;
  AREAL_RECORD(0x1065, "dropped", batch, count)
};
struct QueryBatch {  // -> BatchStats; how many of a batch's shards a consumer still holds.
  TrainBatchId batch{};
  AREAL_RECORD(0x1066, "query_batch", batch)
};
struct BatchStats {
  TrainBatchId batch{};
  std::uint64_t matching = 0;
  AREAL_RECORD(0x1067, "batch_stats", batch, matching)
};

// ---- Tells inside the controller: train_loop, rollout_pool, pause_gate, strict_drain ----

// Asked for again under a later training epoch, its shards are assigned again: the ranks dropped what they had.
struct WantBatch {
  TrainBatchId batch{};
  std::uint64_t step = 0;
  Epoch training_epoch = 0;
  AREAL_RECORD(0x1101, "want_batch", batch, step, training_epoch)
};
struct BatchReady {
  TrainBatchId batch{};
  std::uint32_t groups = 0;
  std::uint64_t digest = 0;
  AREAL_RECORD(0x1102, "batch_ready", batch, groups, digest)
};
struct PausePool {
  AREAL_RECORD(0x1103, "pause_pool")
};
struct ResumePool {
  AREAL_RECORD(0x1104, "resume_pool")
};
struct PoolVersion {
  Version version = 0;
  AREAL_RECORD(0x1105, "pool_version", version)
};
// Training goes on from an earlier version: all work under way is void. Shards of groups that no batch took are named
// to the drain as those of `batch`, before the answer.
struct ResetPool {
  Version version = 0;
  TrainBatchId batch{};
  AREAL_RECORD(0x110D, "reset_pool", version, batch)
};
struct PoolReset {
  Version version = 0;
  AREAL_RECORD(0x110E, "pool_reset", version)
};
struct PauseAll {
  AREAL_RECORD(0x1106, "pause_all")
};
struct AllPaused {
  Outcome outcome = Outcome::kOk;  // Not ok: those that had paused were continued.
  AREAL_RECORD(0x1107, "all_paused", outcome)
};
struct ContinueAll {
  AREAL_RECORD(0x1108, "continue_all")
};
struct AllContinued {
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x1109, "all_continued", outcome)
};
// The pool tells the drain which shards a batch took.
struct DrainShard {
  TrainBatchId batch{};
  ShardId shard{};
  AREAL_RECORD(0x110A, "drain_shard", batch, shard)
};
struct ClearBatch {
  TrainBatchId batch{};
  AREAL_RECORD(0x110B, "clear_batch", batch)
};
struct BatchCleared {
  TrainBatchId batch{};
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x110C, "batch_cleared", batch, outcome)
};

// ---- Tells inside a trainer: train_rank -> update_sender ----

// The rank made a training step. Rates are bits of fp64: the one that the optimizer used, and the one after it.
struct StepMade {
  Version version = 0;
  std::uint64_t optimizer_steps = 0;
  std::uint64_t rate_used = 0;
  std::uint64_t rate_next = 0;
  AREAL_RECORD(0x1131, "step_made", version, optimizer_steps, rate_used, rate_next)
};

// The rank's weights are another history's: whatever was recorded of earlier updates is void.
struct WeightsReplaced {
  Version version = 0;
  AREAL_RECORD(0x1130, "weights_replaced", version)
};

// ---- Tells inside an engine's rank 0: receiver <-> engine_server ----

// The receiver wants to write in place; answered by WriteGranted once nothing decodes and nothing new can.
struct WantWrite {
  Version version = 0;
  AREAL_RECORD(0x1120, "want_write", version)
};
struct WriteGranted {
  Version version = 0;
  AREAL_RECORD(0x1121, "write_granted", version)
};
// The write ended; `ok` false: the weights are mixed, the engine is quarantined until a full update.
struct WriteEnded {
  Version version = 0;
  bool ok = false;
  AREAL_RECORD(0x1122, "write_ended", version, ok)
};
// The engine's weights are `version`, committed.
struct WeightsCommitted {
  Version version = 0;
  AREAL_RECORD(0x1123, "weights_committed", version)
};
// The engine must not serve: its weights are unproven.
struct WeightsUnproven {
  AREAL_RECORD(0x1124, "weights_unproven")
};

void add_kinds(KindTable& kinds);

}  // namespace areal::proto
