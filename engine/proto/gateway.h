// Connect, update, disconnect: reservations first, all-or-nothing fan-out, roll-back, each attempt once.
//
// Owns one pair. An update runs prepare -> execute -> persist -> commit, each step on all W ranks; a version is
// published only after every member applied it, fenced its device and acknowledged the commit. Any failure once ranks
// may be inside a collective breaks the pair: abort everywhere, tear down everywhere, wait until every rank lives,
// connect again under a new epoch, and try the same version under the next attempt. Requests are idempotent: asked
// again, they join what runs or get the same answer.
//
// The router learns from here who is a member: after every commit by all, before the version is published, and, while
// nothing was published yet, after every connect. An update is a delta if no cause here speaks against it, all
// receivers have proven that they hold the published version, and all ranks vote for it. When the pair is connected
// again after an engine lost a rank, the training loop is asked for a repair: an update of the published version, which
// is another attempt at it and publishes nothing anew.
//
// A request of a later training epoch begins another history: a version that was published before is moved again, in
// full, and under a new epoch of the pair.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/dense.h"
#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/member_plan.h"
#include "engine/proto/messages.h"
#include "engine/proto/pair_registry.h"
#include "engine/proto/waits.h"
#include "engine/proto/worker_table.h"

namespace areal::proto {

struct GatewayOptions {
  CallerOptions calls;
  Duration attempt_timeout{150'000'000'000};  // Of the execute step: longer than the members' own.
  Duration workers_timeout{600'000'000'000};  // How long dead ranks are waited for.
  std::uint32_t max_attempts = 5;             // Of one update request.
  std::uint32_t connect_tries = 5;
  bool delta = false;  // Updates may be deltas.
  // What every rank must report to send or receive; by transfer rank.
  std::shared_ptr<const std::vector<MemberPlan>> plans;
};

class Gateway {
 public:
  static constexpr std::string_view kName = "gateway";

  Gateway(GatewayOptions options, ClusterMap cluster);

  void step(const Input& input, Outbox& out);

  [[nodiscard]] const PairRegistry& registry() const { return registry_; }
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  void list_waits(WaitList& waits) const;

 private:
  enum class Step : std::uint8_t {
    kIdle,
    kReporting,
    kReservingPort,
    kInitialising,
    kRollingBack,
    kPreparing,
    kExecuting,
    kPersisting,
    kCommitting,
    kTellingRouter,
    kRevoking,
    kAborting,
    kWarningRouter,
    kTearingDown,
    kReturningPort
  };
  struct PendingUpdate {
    RequestKey key;
    Version version = 0;
    std::uint32_t attempts = 0;  // Begun so far for this request.
    Attempt attempt = 0;         // The present one, counted over all requests for this version.
    UpdateMode mode = UpdateMode::kFull;
    FullReason reason = FullReason::kNone;
    std::uint64_t bytes = 0;
    // What the ranks said that it was: the first answer, and the reason of the lowest sender that has one of its own.
    bool heard = false;
    std::uint32_t reason_rank = 0;
    AREAL_FIELDS(key, version, attempts, attempt, mode, reason, bytes, heard, reason_rank)
  };

  void on_request(const port::MessageIn& in, Outbox& out);
  void on_connect(const port::MessageIn& in, Outbox& out);
  void on_update(const port::MessageIn& in, const UpdateRequest& asked, Outbox& out);
  void on_disconnect(const port::MessageIn& in, Outbox& out);
  void on_worker_exited(std::uint32_t rank, Incarnation incarnation, Outbox& out);
  void on_worker_started(std::uint32_t rank, Incarnation incarnation, Outbox& out);
  void lose_worker(std::uint32_t rank, Outbox& out);
  void on_reply(const port::MessageIn& in, Outbox& out);
  void on_gave_up(const PendingRequest& request, Outbox& out);
  void on_timer(const port::TimerFired& in, Outbox& out);
  void on_stored(const port::StoreDone& in, Outbox& out);

  // Asks every living rank; `make(rank)` is the request.
  template <class Make>
  void fan_out(Step step, Make&& make, Outbox& out);
  void settled(Outbox& out);
  void note_failure(Outcome outcome, NodeId peer);
  [[nodiscard]] bool is_answer(const PendingRequest& request, const Record& body) const;
  // What a reply to a fan-out says; false if it is a failure.
  bool read_reply(const port::MessageIn& in, std::uint32_t rank, Outbox& out);

  void advance(Outbox& out);
  void begin_connect(Outbox& out);
  void reports_settled(Outbox& out);
  void init_settled(Outbox& out);
  void connected(Outbox& out);
  void begin_attempt(Outbox& out);
  void prepare_settled(Outbox& out);
  void persist(const Digest128& expected, Outbox& out);
  void committed(Outbox& out);
  void tell_router(Version version, Outbox& out);
  void told_router(Outbox& out);
  void publish(Outbox& out);
  // Asks the training loop for a repair, if one is due.
  void ask_repair(Outbox& out);
  void fail_attempt(Outcome outcome, NodeId peer, Outbox& out);
  void revoke_members(Outbox& out);
  void abort_members(Outbox& out);
  void tear_down(Outbox& out);
  void warn_router(Outbox& out);
  void tear_down_members(Outbox& out);
  void torn_down(Outbox& out);
  void end_epoch(Outbox& out);
  void answer_update(Outcome outcome, Outbox& out);
  void note_state(port::PairState state, Outbox& out) const;
  [[nodiscard]] FullReason reason_of_attempt() const;
  // What one rank says that the attempt was; false if another said something else.
  bool hear_mode(PendingUpdate& update, std::uint32_t rank, const Executed& said) const;
  // Another history of training begins: what was published of the one before may come again with other bytes.
  void begin_history(Epoch training_epoch, Version version);
  [[nodiscard]] bool is_unproven(std::uint32_t engine) const;
  [[nodiscard]] bool has_lost_engines() const;

  GatewayOptions options_;
  ClusterMap cluster_;
  PairRegistry registry_{1};
  WorkerTable workers_;
  Caller caller_;
  Caller repairs_;  // Requests for a repair: no part of any fan-out.
  Callee callee_;
  Step step_ = Step::kIdle;
  std::uint32_t outstanding_ = 0;  // Requests of the present fan-out.
  bool failed_ = false;            // The present fan-out has failed somewhere.
  Outcome failure_ = Outcome::kOk;
  NodeId failed_peer_{};
  bool wants_pair_ = false;
  bool closing_ = false;
  std::optional<RequestKey> connect_key_;
  std::optional<RequestKey> close_key_;
  std::uint32_t connects_failed_ = 0;
  std::optional<PendingUpdate> update_;
  Epoch epoch_ = 0;
  Version version_ = 0;       // Published.
  Attempt ticket_ = 0;        // The registry's own count of tries.
  Epoch training_epoch_ = 0;  // The newest one that was heard of.
  Version tried_version_ = 0;
  Attempt last_attempt_ = 0;          // Of tried_version_.
  Dense<std::uint8_t> lost_engines_;  // By engine: lost a rank since the last publication.
  std::uint16_t port_ = 0;
  bool broken_since_publish_ = false;
  bool lost_trainer_ = false;        // A training rank died since the last update request.
  bool recovered_ = false;           // Nothing was published yet under training_epoch_.
  bool lost_while_telling_ = false;  // A member was lost that the router was just being told of.
  bool touched_ = false;             // An attempt since the last publication may have begun to write.
  std::uint64_t next_op_ = 0;

 public:
  AREAL_FIELDS(registry_, workers_, caller_, callee_, step_, outstanding_, failed_, failure_, failed_peer_, wants_pair_,
               closing_, connect_key_, close_key_, connects_failed_, update_, epoch_, version_, ticket_, port_,
               broken_since_publish_, lost_engines_, lost_while_telling_, touched_, tried_version_, last_attempt_,
               repairs_, next_op_, lost_trainer_, training_epoch_, recovered_)
};

template <class Make>
void Gateway::fan_out(Step step, Make&& make, Outbox& out) {
  step_ = step;
  failed_ = false;
  failure_ = Outcome::kOk;
  failed_peer_ = {};
  outstanding_ = 0;
  for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_.at(rank).alive) continue;
    const SlotId slot = rank < cluster_.infer_world() ? kReceiverSlot : kSenderSlot;
    caller_.ask(workers_.at(rank).node, slot, make(rank), out);
    ++outstanding_;
  }
  if (outstanding_ == 0) settled(out);
}

}  // namespace areal::proto
