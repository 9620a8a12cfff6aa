// The server of one engine: takes requests, decodes them, pauses and continues, and lets the receiver write weights.
//
// Every segment bears the version and digest of the weights that made it. Nothing decodes while the engine loads, is
// quarantined or paused, or while its weights are written and not committed. Requests that come during a write or an
// in-place pause are queued; those that the engine cannot serve are answered with kFailed, so that they go elsewhere.
//
// Invariants: 1. While the device is frozen no request is started. 2. A request that is let decode is kDecoding before
// the step ends. 3. The answer to a request leaves after the answers to its segment reports.
// One value of the node's loop; not thread-safe.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/table.h"
#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/decode_table.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"
#include "engine/proto/write_lock.h"

namespace areal::proto {

struct EngineServerOptions {
  EngineId engine;
  std::size_t requests = 4096;  // Under work or queued; a further one is refused as busy.
  CallerOptions reports;        // Segment reports to the pool; after the last try a segment is lost to training.
};

class EngineServer {
 public:
  static constexpr std::string_view kName = "engine_server";

  EngineServer(const EngineServerOptions& options, ClusterMap cluster, LockPolicy lock = claim_at_once);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool quarantined() const { return quarantined_; }
  [[nodiscard]] bool can_decode() const;
  [[nodiscard]] std::uint32_t count(DecodePhase phase) const;

  AREAL_FIELDS(loading_, quarantined_, version_, published_, training_epoch_, paused_, mode_, frozen_, newest_pause_,
               pausing_, was_running_, next_op_, decodes_, lock_, generates_, pauses_, versions_, reports_)

 private:
  void on_message(const port::MessageIn& message, Outbox& out);
  void on_generate(const port::MessageIn& message, const GenerateRequest& request, Outbox& out);
  void on_pause(const port::MessageIn& message, const PauseEngine& pause, Outbox& out);
  void on_continue(const port::MessageIn& message, Outbox& out);
  void on_set_version(const port::MessageIn& message, const SetVersion& set, Outbox& out);
  void on_tell(const port::TellIn& tell, Outbox& out);
  void on_compute(const port::ComputeDone& done, Outbox& out);

  // Admits a request of the pause gate that is newer than all before.
  bool admit_pause(const port::MessageIn& message, Outbox& out);
  void refuse_generate(const port::MessageIn& message, const GenerateRequest& request, Refusal reason, Outbox& out);
  void replace_older(SampleId sample, Outbox& out);
  void close_segment(OpId op, const port::ComputeDone& done, Outbox& out);
  void finish(OpId op, const GenerateReply& reply, Outbox& out);
  void on_reported(const PendingRequest& report, Outbox& out);
  void park_all(Outbox& out);
  void stop_all(Outbox& out);
  void quarantine(Outbox& out);
  void follow_lock(WriteLock::Next next, Outbox& out);
  // Does what has become possible: answers a pause, grants the write, lets decoding begin or go on.
  void settle(Outbox& out);
  void open(Outbox& out);
  [[nodiscard]] LockView view() const;
  void check_invariants() const;

  // Set at construction; not state.
  EngineServerOptions options_;
  ClusterMap cluster_;

  bool loading_ = true;
  bool quarantined_ = false;
  Version version_ = 0;       // Of the committed weights.
  Version published_ = 0;     // As the controller said, ...
  Epoch training_epoch_ = 0;  // ... under this training epoch: only a later one may have a lower version.
  bool paused_ = false;
  PauseMode mode_ = PauseMode::kAbortResubmit;
  bool frozen_ = false;              // The device was told to park.
  RequestId newest_pause_;           // A pause or continue that is older than the last one acted on comes too late.
  std::vector<RequestKey> pausing_;  // Pauses that wait until nothing decodes. At most kMaxPauses.
  std::uint32_t was_running_ = 0;    // When the pause came.
  std::uint64_t next_op_ = 0;
  Table<OpId, Decode> decodes_;
  WriteLock lock_;
  // One for each kind of asker: their request ids are counted apart.
  Callee generates_;
  Callee pauses_;
  Callee versions_;
  Caller reports_;
};

}  // namespace areal::proto
