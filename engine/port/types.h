// The values that cross the seam: what can happen to a protocol (inputs) and what it can ask for (effects).
//
// All are trivially copyable and described, so each travels, is recorded, hashed and printed from one declaration.
// Payload never appears: a protocol sees handles, counts, digests and outcomes. Ids are numbers chosen by the asker;
// everything that was asked for ends exactly once, with that id.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/dtype.h"
#include "engine/base/record.h"

namespace areal::port {

// How an operation ended. Only these lead to different acts; the reason for people is in the trace.
enum class Outcome : std::uint8_t { kOk, kFailed, kTimedOut, kPeerGone, kAborted, kNoMemory, kMismatch, kRefused };
constexpr std::array<std::string_view, 8> enum_names(Outcome /*tag*/) {
  return {"ok", "failed", "timed_out", "peer_gone", "aborted", "no_memory", "mismatch", "refused"};
}

enum class Backend : std::uint8_t { kNccl, kGloo };
constexpr std::array<std::string_view, 2> enum_names(Backend /*tag*/) { return {"nccl", "gloo"}; }

// What a posted batch does. A send or receive batch covers all peers of one plan slice and one wire dtype. A reduce
// sums device memory over the group (the corrections of one window of parameters, the norm of gradients) and its two
// words.
enum class BatchKind : std::uint8_t { kSend, kReceive, kBarrier, kSum, kMin, kMax, kReduce };
constexpr std::array<std::string_view, 7> enum_names(BatchKind /*tag*/) {
  return {"send", "receive", "barrier", "sum", "min", "max", "reduce"};
}

// Which exchange a send or receive batch is part of: the dense one, or one of the two rounds of the sparse one. Counts
// say how many updates each operation has; data carries their indices and values, between peers that have any.
enum class Round : std::uint8_t { kDense, kCounts, kData };
constexpr std::array<std::string_view, 3> enum_names(Round /*tag*/) { return {"dense", "counts", "data"}; }

// What device memory is for; limits and leaks are judged by tag.
enum class MemoryTag : std::uint8_t { kWeights, kOptimizer, kGradients, kKvCache, kStaging };
constexpr std::array<std::string_view, 5> enum_names(MemoryTag /*tag*/) {
  return {"weights", "optimizer", "gradients", "kv_cache", "staging"};
}

// What a training or rollout engine can be asked to do. The meaning of version, buffer, epoch, seed, amount and rate is
// given with each value; a field that is not named is 0.
enum class ComputeKind : std::uint8_t {
  // Loads version 0. Ends with total = tensors, digest = weights held.
  kLoadModel,
  // Forward and backward of the batch `seed`, for the step that makes `version`. Ends with count = gradients that are
  // not finite, total = this rank's part of the squared norm.
  kGradients,
  // `amount` AdamW steps (0: skipped, one of the gradients was not finite); version = the version they make, seed =
  // digest of the batch. Ends with count = steps made, total = bits of the fp64 learning rate that they used, extra =
  // that of the step after them, digest = weights.
  kTrainStep,
  // Gathers the payload and fingerprints what is held of `version`, for later deltas. Ends with count = parameters
  // whose last synced state is known, kMismatch if the weights are of another version, kRefused if the optimizer's
  // state cannot be inverted.
  kCapture,
  // Inverts the step of the parameters of window `amount`, which used the learning rate `rate`; seed = 1 if a full
  // update is certain already. Ends with count = parameters contributed to, total = 1 if the update must be full.
  kInvert,
  // Compares window `amount` after its reductions; seed = how many members want a full update. Ends with count =
  // elements that changed, total = 1 if the update must be full.
  kCompare,
  // Casts what the plan of `epoch` sends to its wire dtypes, into `buffer`. Ends with count = elements, total = low
  // word of the sum over what left, digest = all that this rank sends as the engines should hold it; kMismatch if the
  // weights are of another version.
  kPack,
  // The same of changed elements only. extra = elements that differ from what was last synced and are in no mask.
  kPackDelta,
  // Digests what landed in `buffer`. Ends with count = elements, digest = what arrived.
  kVerify,
  // Writes `buffer` over the live weights in place. Ends with count = tensors written of total, digest = weights.
  kApply,
  // Writes the updates of `buffer` into the live weights in place. Ends as kApply does.
  kApplyDelta,
  // Waits until the device has finished all earlier work. Ends with digest = weights held.
  kFence,
  // What kCapture captured of `version` is what the engines hold now. Ends with count = parameters.
  kMarkSynced,
  // Writes weights, moments and step counters of `version` to checkpoint slot `amount`. Ends with digest = of all that.
  kSaveCheckpoint,
  // Reads them back. Ends with digest = of all that, kFailed if the slot holds another version.
  kLoadCheckpoint,
  // Up to `amount` tokens for sample `seed`, ends early at its stop token. Ends with count = tokens, digest = weights
  // that made them; version = 0.
  kGenerate,
  // Scores sample group `seed`. Ends with count = 1 if its rewards differ, else 0.
  kReward,
};
constexpr std::array<std::string_view, 17> enum_names(ComputeKind /*tag*/) {
  return {"load_model",  "gradients",       "train_step",      "capture",  "invert",      "compare",
          "pack",        "pack_delta",      "verify",          "apply",    "apply_delta", "fence",
          "mark_synced", "save_checkpoint", "load_checkpoint", "generate", "reward"};
}

// No learning rate: the bits of no number.
inline constexpr std::uint64_t kNoRate = ~std::uint64_t{0};

// A request is asked again until it is answered; a reply carries the request's id. One-way messages have request 0.
enum class MessageKind : std::uint8_t { kOneWay, kRequest, kReply };
constexpr std::array<std::string_view, 3> enum_names(MessageKind /*tag*/) { return {"one_way", "request", "reply"}; }

// ---- Inputs ----

// The process runs. `seed` is a random word chosen by the host, the only randomness a protocol ever gets.
struct Started {
  Incarnation incarnation = 0;
  std::uint16_t port = 0;  // Leased for this process; 0 for processes that nobody leased one for.
  std::uint64_t seed = 0;
  AREAL_RECORD(0x0101, "started", incarnation, port, seed)
};
// A message came; the body says what.
struct MessageIn {
  NodeId from{};
  Incarnation from_incarnation = 0;
  SlotId from_slot{};
  MessageKind kind = MessageKind::kOneWay;
  RequestId request{};
  Record body{};
  AREAL_RECORD(0x0102, "message", from, from_incarnation, from_slot, kind, request)
};
// Another protocol of the same node said something; the body says what.
struct TellIn {
  SlotId from_slot{};
  Record body{};
  AREAL_RECORD(0x0103, "told", from_slot)
};
struct TimerFired {
  TimerId timer{};
  AREAL_RECORD(0x0104, "timer", timer)
};
struct GroupJoined {
  GroupId group{};
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x0105, "group_joined", group, outcome)
};
// A batch ended. For kSum, kMin, kMax and kReduce, value and count hold the reduced words; for counts that were
// received, value = elements that will come, count = peers that have any.
struct BatchDone {
  GroupId group{};
  BatchId batch{};
  Outcome outcome = Outcome::kOk;
  NodeId peer{};  // The member that is to blame, if one is known.
  std::uint64_t value = 0;
  std::uint64_t count = 0;
  AREAL_RECORD(0x0106, "batch_done", group, batch, outcome, peer, value, count)
};
// The abort of a group completed: none of its operations runs any more and its buffers are the node's own again.
struct GroupAborted {
  GroupId group{};
  AREAL_RECORD(0x0107, "group_aborted", group)
};
struct ComputeDone {
  OpId op{};
  ComputeKind what = ComputeKind::kLoadModel;
  Outcome outcome = Outcome::kOk;
  Version version = 0;
  std::uint64_t count = 0;
  std::uint64_t total = 0;
  Digest128 digest{};
  std::uint64_t extra = 0;
  AREAL_RECORD(0x0108, "compute_done", op, what, outcome, version, count, total, digest, extra)
};
struct BufferReady {
  BufferId buffer{};
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x0109, "buffer_ready", buffer, outcome)
};
struct BufferReleased {
  BufferId buffer{};
  AREAL_RECORD(0x010A, "buffer_released", buffer)
};
struct StoreDone {
  OpId op{};
  Outcome outcome = Outcome::kOk;  // kMismatch: put_if found another value; `value` is what it found.
  Digest128 value{};
  AREAL_RECORD(0x010B, "store_done", op, outcome, value)
};
struct PortLeased {
  OpId op{};
  Outcome outcome = Outcome::kOk;
  std::uint16_t port = 0;
  AREAL_RECORD(0x010C, "port_leased", op, outcome, port)
};
struct ProcessStarted {
  OpId op{};
  NodeId node{};
  Incarnation incarnation = 0;
  Outcome outcome = Outcome::kOk;
  AREAL_RECORD(0x010D, "process_started", op, node, incarnation, outcome)
};
// A process that this node started is confirmed dead.
struct ProcessExited {
  NodeId node{};
  Incarnation incarnation = 0;
  std::int32_t code = 0;
  AREAL_RECORD(0x010E, "process_exited", node, incarnation, code)
};
// Answer to QueryMemory.
struct MemoryUsed {
  OpId op{};
  std::uint64_t bytes = 0;
  AREAL_RECORD(0x010F, "memory_used", op, bytes)
};

// ---- Effects ----

struct Send {
  NodeId to{};
  SlotId to_slot{};
  MessageKind kind = MessageKind::kOneWay;
  RequestId request{};
  Record body{};
  AREAL_RECORD(0x0201, "send", to, to_slot, kind, request)
};
// Says something to another protocol of the same node; it arrives as an input of its own, never as a nested call.
struct Tell {
  SlotId to_slot{};
  Record body{};
  AREAL_RECORD(0x0202, "tell", to_slot)
};
// Arming an armed timer moves it.
struct ArmTimer {
  TimerId timer{};
  Duration after{};
  AREAL_RECORD(0x0203, "arm_timer", timer, after)
};
struct DisarmTimer {
  TimerId timer{};
  AREAL_RECORD(0x0204, "disarm_timer", timer)
};
// Meets all `world` members of `group`. The name of the group on a store is its number; it is never used twice.
struct JoinGroup {
  GroupId group{};
  Backend backend = Backend::kNccl;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  std::uint16_t port = 0;  // Where rank 0 listens.
  AREAL_RECORD(0x0205, "join_group", group, backend, rank, world, port)
};
// Posts one batch. The n-th batch of every member of a group meets; `tag` names the meeting and must be equal.
struct PostBatch {
  GroupId group{};
  BatchId batch{};
  BatchKind kind = BatchKind::kBarrier;
  std::uint64_t tag = 0;
  Round round = Round::kDense;
  std::uint32_t part = 0;  // Which wire dtype of a transfer, which window of a reduction: counted from 0.
  Version version = 0;
  BufferId buffer{};
  DType dtype = DType::kBf16;          // Of the elements on the wire.
  DType storage_dtype = DType::kBf16;  // Of the elements where they live; only looked at by rules and judges.
  std::uint64_t elements = 0;          // Of a reduction: how many sums; of counts: 0.
  std::uint64_t bytes = 0;             // Of data: with an int32 index for each element.
  std::uint64_t value = 0;             // Reduced by kSum, kMin, kMax, kReduce.
  std::uint64_t count = 0;             // A second word, reduced alike.
  AREAL_RECORD(0x0206, "post_batch", group, batch, kind, tag, round, part, version, buffer, dtype, storage_dtype,
               elements, bytes, value, count)
};
// Ends every operation of this group and its epoch; the only cancellation there is.
struct AbortGroup {
  GroupId group{};
  AREAL_RECORD(0x0207, "abort_group", group)
};
// Leaves a group that has no operation under way.
struct LeaveGroup {
  GroupId group{};
  AREAL_RECORD(0x0208, "leave_group", group)
};
struct StartCompute {
  OpId op{};
  ComputeKind what = ComputeKind::kLoadModel;
  Version version = 0;
  BufferId buffer{};
  Epoch epoch = 0;  // Of the plan that packing, verifying and applying follow.
  std::uint64_t seed = 0;
  std::uint64_t amount = 0;
  std::uint64_t rate = 0;  // kInvert: bits of the fp64 learning rate that the last step used; kNoRate: not recorded.
  AREAL_RECORD(0x0209, "start_compute", op, what, version, buffer, epoch, seed, amount, rate)
};
// Asks a running operation to end early; it still ends exactly once, as kAborted with what it had done.
struct StopCompute {
  OpId op{};
  AREAL_RECORD(0x020A, "stop_compute", op)
};
// Parks every running kGenerate of this node: each ends its current segment, and goes on when thawed.
struct FreezeCompute {
  bool frozen = false;
  AREAL_RECORD(0x020B, "freeze_compute", frozen)
};
struct ReserveBuffer {
  BufferId buffer{};
  std::uint64_t bytes = 0;
  MemoryTag tag = MemoryTag::kStaging;
  AREAL_RECORD(0x020C, "reserve_buffer", buffer, bytes, tag)
};
struct ReleaseBuffer {
  BufferId buffer{};
  AREAL_RECORD(0x020D, "release_buffer", buffer)
};
struct QueryMemory {
  OpId op{};
  MemoryTag tag = MemoryTag::kStaging;
  AREAL_RECORD(0x020E, "query_memory", op, tag)
};
// Writes `value` under `key` if the present value is `expected` (all zero: absent).
struct StorePut {
  OpId op{};
  std::uint64_t key = 0;
  Digest128 expected{};
  Digest128 value{};
  AREAL_RECORD(0x020F, "store_put", op, key, expected, value)
};
struct StoreGet {
  OpId op{};
  std::uint64_t key = 0;
  AREAL_RECORD(0x0210, "store_get", op, key)
};
// Leases a free port on this node's host, for as long as it takes until ReleasePort.
struct LeasePort {
  OpId op{};
  AREAL_RECORD(0x0211, "lease_port", op)
};
struct ReleasePort {
  std::uint16_t port = 0;
  AREAL_RECORD(0x0212, "release_port", port)
};
// Starts the process `node` on this node's host with `port`.
struct StartProcess {
  OpId op{};
  NodeId node{};
  std::uint16_t port = 0;
  AREAL_RECORD(0x0213, "start_process", op, node, port)
};
struct StopProcess {
  NodeId node{};
  Duration grace{};
  AREAL_RECORD(0x0214, "stop_process", node, grace)
};
// A declared probe: what a judge or a table needs and no message carries. Goes to the trace and nowhere else.
struct Note {
  Record body{};
  AREAL_RECORD(0x0215, "note")
};

// Adds all kinds of this file to a table.
void add_kinds(KindTable& kinds);

}  // namespace areal::port
