#include "engine/proto/gateway.h"

namespace areal::proto {
namespace {

constexpr PairId kPair{1};
constexpr TimerId kAttemptDeadline{1};
constexpr TimerId kWorkersDeadline{2};
constexpr std::uint64_t kRepairTimers = 2ULL << 32;

CallerOptions calls_for_repairs(CallerOptions calls) {
  calls.timer_base = kRepairTimers;
  return calls;
}

KindId reply_kind(KindId request) {
  switch (request) {
    case ReportMeta::kKind:
      return MetaReport::kKind;
    case InitGroups::kKind:
      return InitDone::kKind;
    case Prepare::kKind:
      return Prepared::kKind;
    case Execute::kKind:
      return Executed::kKind;
    case Commit::kKind:
      return Committed::kKind;
    case AbortUpdate::kKind:
      return UpdateAborted::kKind;
    case Teardown::kKind:
      return TornDown::kKind;
    case ReservePort::kKind:
      return PortReserved::kKind;
    default:  // Kinds are open: everything else is acknowledged.
      return Ack::kKind;
  }
}

}  // namespace

Gateway::Gateway(GatewayOptions options, ClusterMap cluster)
    : options_(std::move(options)),
      cluster_(std::move(cluster)),
      workers_(cluster_),
      caller_(options_.calls),
      repairs_(calls_for_repairs(options_.calls)),
      lost_engines_(cluster_.engines, 0) {}

void Gateway::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    caller_.start(started->incarnation);
    repairs_.start(started->incarnation);
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    if (message->kind == port::MessageKind::kReply) on_reply(*message, out);
    if (message->kind == port::MessageKind::kRequest && callee_.admit(*message, out)) on_request(*message, out);
  } else if (const auto* timer = std::get_if<port::TimerFired>(&input)) {
    on_timer(*timer, out);
  } else if (const auto* stored = std::get_if<port::StoreDone>(&input)) {
    on_stored(*stored, out);
  }
}

void Gateway::note_state(port::PairState state, Outbox& out) const {
  out.note(port::PairChanged{epoch_, state, version_});
}

// ---- Requests ----

void Gateway::on_request(const port::MessageIn& in, Outbox& out) {
  dispatch_record<ConnectRequest>(in.body, [&](const ConnectRequest&) { on_connect(in, out); });
  dispatch_record<UpdateRequest>(in.body, [&](const UpdateRequest& asked) { on_update(in, asked, out); });
  dispatch_record<DisconnectRequest>(in.body, [&](const DisconnectRequest&) { on_disconnect(in, out); });
  dispatch_record<WorkerExited>(in.body, [&](const WorkerExited& said) {
    callee_.reply(Callee::key_of(in), Ack{}, out);
    if (const auto rank = workers_.rank_of(said.node)) on_worker_exited(*rank, said.incarnation, out);
  });
  dispatch_record<WorkerStarted>(in.body, [&](const WorkerStarted& said) {
    callee_.reply(Callee::key_of(in), Ack{}, out);
    if (const auto rank = workers_.rank_of(said.node)) on_worker_started(*rank, said.incarnation, out);
  });
}

void Gateway::on_connect(const port::MessageIn& in, Outbox& out) {
  const Pair* pair = registry_.get(kPair);
  const bool connected = pair != nullptr && pair->state == PairState::kConnected;
  if (connected || connect_key_ || closing_) {  // A second connect never touches a worker.
    const Outcome outcome = connected && !closing_ ? Outcome::kOk : Outcome::kRefused;
    callee_.reply(Callee::key_of(in), ConnectReply{outcome, epoch_}, out);
    return;
  }
  connect_key_ = Callee::key_of(in);
  wants_pair_ = true;
  connects_failed_ = 0;
  advance(out);
}

void Gateway::on_update(const port::MessageIn& in, const UpdateRequest& asked, Outbox& out) {
  const RequestKey key = Callee::key_of(in);
  if (asked.training_epoch > training_epoch_ && !update_) begin_history(asked.training_epoch, asked.version);
  const bool repairs = asked.version == version_ && version_ != 0 && has_lost_engines();
  const bool known = asked.training_epoch == training_epoch_ && !recovered_;
  if (known && asked.version == version_ && version_ != 0 &&
      !repairs) {  // Published already; its asker missed the answer.
    callee_.reply(key, UpdateReply{version_, Outcome::kOk, 0, UpdateMode::kFull, FullReason::kNone, 0}, out);
    return;
  }
  Refusal reason = Refusal::kUnknown;
  if (!wants_pair_ || closing_) reason = Refusal::kNotConnected;
  if (update_) reason = Refusal::kBusy;
  const bool from_start = recovered_ && asked.version == 0;  // Training began anew without a checkpoint.
  if (asked.version != version_ + 1 && !repairs && !from_start) reason = Refusal::kVersionOrder;
  if (asked.training_epoch < training_epoch_) reason = Refusal::kStaleAttempt;
  if (reason != Refusal::kUnknown) {
    out.note(port::Refused{in.body.kind, reason, in.from, asked.version});
    callee_.reply(key, UpdateReply{asked.version, Outcome::kRefused, 0, UpdateMode::kFull, FullReason::kNone, 0}, out);
    return;
  }
  update_ = PendingUpdate{};
  update_->key = key;
  update_->version = asked.version;
  lost_trainer_ = false;
  repairs_.forget_if([](const PendingRequest&) { return true; }, out);
  connects_failed_ = 0;
  advance(out);
}

void Gateway::on_disconnect(const port::MessageIn& in, Outbox& out) {
  close_key_ = Callee::key_of(in);
  closing_ = true;
  wants_pair_ = false;
  advance(out);
}

// ---- Membership ----

void Gateway::on_worker_exited(std::uint32_t rank, Incarnation incarnation, Outbox& out) {
  if (workers_.exited(rank, incarnation)) lose_worker(rank, out);
}

void Gateway::on_worker_started(std::uint32_t rank, Incarnation incarnation, Outbox& out) {
  if (workers_.started(rank, incarnation)) lose_worker(rank, out);
  advance(out);
}

void Gateway::lose_worker(std::uint32_t rank, Outbox& out) {
  const NodeId node = workers_.at(rank).node;
  if (rank < cluster_.infer_world()) lost_engines_.set(rank / cluster_.engine_world, 1);
  if (rank >= cluster_.infer_world()) lost_trainer_ = true;
  const std::size_t forgotten =
      caller_.forget_if([&](const PendingRequest& request) { return request.to == node; }, out);
  outstanding_ -= static_cast<std::uint32_t>(forgotten);
  switch (step_) {
    case Step::kIdle:
      if (const Pair* pair = registry_.get(kPair); pair != nullptr && pair->state == PairState::kConnected) {
        tear_down(out);
      } else if (update_ && lost_trainer_) {
        answer_update(Outcome::kPeerGone, out);  // It waits for a pair, and its weights are gone.
      }
      break;
    case Step::kPreparing:
    case Step::kExecuting:
    case Step::kPersisting:
    case Step::kCommitting:
      fail_attempt(Outcome::kPeerGone, node, out);
      break;
    case Step::kTellingRouter:  // All had committed: that stands. It is dealt with next.
      lost_while_telling_ = true;
      break;
    case Step::kReporting:
    case Step::kReservingPort:
    case Step::kInitialising:
      note_failure(Outcome::kPeerGone, node);
      if (forgotten > 0 && outstanding_ == 0) settled(out);
      break;
    case Step::kRollingBack:
    case Step::kRevoking:
    case Step::kAborting:
    case Step::kWarningRouter:
    case Step::kTearingDown:
    case Step::kReturningPort:
      if (forgotten > 0 && outstanding_ == 0) settled(out);
      break;
  }
}

// ---- Fan-out ----

void Gateway::note_failure(Outcome outcome, NodeId peer) {
  if (failed_) return;
  failed_ = true;
  failure_ = outcome;
  failed_peer_ = peer;
}

// A reply must be of the kind that its request asks for, and of the attempt that is under way.
bool Gateway::is_answer(const PendingRequest& request, const Record& body) const {
  if (body.kind != reply_kind(request.body.kind)) return false;
  bool fits = true;
  dispatch_record<Prepared, Executed, Committed>(body, [&](const auto& said) {
    fits = update_ && said.epoch == epoch_ && said.version == update_->version && said.attempt == update_->attempt;
  });
  return fits;
}

void Gateway::on_reply(const port::MessageIn& in, Outbox& out) {
  const auto rank = workers_.rank_of(in.from);
  if (rank && !workers_.is_current(*rank, in.from_incarnation)) return;
  const auto request = caller_.answered(in, out);
  if (!request) {
    repairs_.answered(in, out);
    return;
  }
  --outstanding_;
  if (!is_answer(*request, in.body)) {
    out.note(port::Refused{in.body.kind, Refusal::kUnknown, in.from, in.request.value});
    note_failure(Outcome::kFailed, in.from);
    if (step_ == Step::kExecuting) return fail_attempt(failure_, failed_peer_, out);
    if (outstanding_ == 0) settled(out);
    return;
  }
  if (dispatch_record<PortReserved>(in.body, [&](const PortReserved& said) {
        port_ = said.port;
        if (said.outcome != Outcome::kOk) note_failure(said.outcome, in.from);
      })) {
    settled(out);
    return;
  }
  const bool well = !rank || read_reply(in, *rank, out);
  if (!well && step_ == Step::kExecuting) {  // Its peers may wait for it inside a collective: do not wait for them.
    fail_attempt(failure_, failed_peer_, out);
    return;
  }
  if (outstanding_ == 0) settled(out);
}

bool Gateway::read_reply(const port::MessageIn& in, std::uint32_t rank, Outbox& out) {
  Outcome outcome = Outcome::kOk;
  NodeId peer = in.from;
  dispatch_record<MetaReport>(in.body, [&](const MetaReport& said) {
    const bool infers = rank < cluster_.infer_world();
    const std::uint32_t expected = infers ? rank % cluster_.engine_world : rank - cluster_.infer_world();
    const std::uint32_t world = infers ? cluster_.engine_world : cluster_.train_world();
    const bool fits = (said.role == Role::kEngine) == infers && said.rank == expected && said.world == world &&
                      (!infers || said.engine.value == rank / cluster_.engine_world);
    if (fits) return;
    outcome = Outcome::kMismatch;
    out.note(port::Refused{in.body.kind, Refusal::kRankMap, in.from, said.rank});
  });
  dispatch_record<InitDone>(in.body, [&](const InitDone& said) { outcome = said.outcome; });
  dispatch_record<Prepared>(in.body, [&](const Prepared& said) {
    outcome = said.outcome;
    // Whoever does not hold the base cannot take a delta; that is no failure.
    const bool lacks_base = rank < cluster_.infer_world() && said.base != version_;
    if (lacks_base && outcome == Outcome::kOk && update_ && update_->mode == UpdateMode::kDelta) {
      update_->mode = UpdateMode::kFull;
      update_->reason = FullReason::kBaseMismatch;
      out.note(port::Refused{in.body.kind, Refusal::kVersionOrder, in.from, said.base});
    }
    const MemberPlan& plan = (*options_.plans)[rank];
    const bool same_dtype = plan.passes.empty() || plan.passes.front().wire == said.dtype;
    if (said.elements == plan.elements() && said.bytes == plan.bytes() && same_dtype) return;
    outcome = Outcome::kMismatch;
    out.note(port::Refused{in.body.kind, Refusal::kPlanMismatch, in.from, said.bytes});
  });
  dispatch_record<Executed>(in.body, [&](const Executed& said) {
    outcome = said.outcome;
    if (said.peer.value != 0) peer = said.peer;
    if (!update_ || said.outcome != Outcome::kOk) return;
    update_->bytes += said.bytes;
    if (!hear_mode(*update_, rank, said)) outcome = Outcome::kMismatch;
  });
  dispatch_record<Committed>(in.body, [&](const Committed& said) { outcome = said.outcome; });
  dispatch_record<UpdateAborted>(in.body, [&](const UpdateAborted& said) {
    if (said.quarantined && rank < cluster_.infer_world()) lost_engines_.set(rank / cluster_.engine_world, 1);
  });
  if (outcome != Outcome::kOk) note_failure(outcome, peer);
  return outcome == Outcome::kOk;
}

bool Gateway::hear_mode(PendingUpdate& update, std::uint32_t rank, const Executed& said) const {
  // What was asked to be a delta may have become full, but never the other way round.
  const bool allowed = said.mode == update.mode || (!update.heard && said.mode == UpdateMode::kFull);
  if (!allowed) return false;
  update.heard = true;
  update.mode = said.mode;
  const bool own = said.reason != FullReason::kNone && said.reason != FullReason::kPeerRank;
  const bool first = update.reason == FullReason::kNone || rank < update.reason_rank;
  if (own && first && rank >= cluster_.infer_world()) {
    update.reason = said.reason;
    update.reason_rank = rank;
  }
  return true;
}

void Gateway::on_gave_up(const PendingRequest& request, Outbox& out) {
  --outstanding_;
  note_failure(Outcome::kTimedOut, request.to);
  if (step_ == Step::kExecuting) {
    fail_attempt(failure_, failed_peer_, out);
  } else if (outstanding_ == 0) {
    settled(out);
  }
}

void Gateway::settled(Outbox& out) {
  switch (step_) {
    case Step::kIdle:
    case Step::kPersisting:
      break;
    case Step::kReporting:
    case Step::kReservingPort:
      reports_settled(out);
      break;
    case Step::kInitialising:
      init_settled(out);
      break;
    case Step::kPreparing:
      prepare_settled(out);
      break;
    case Step::kExecuting:
      out.push(port::DisarmTimer{kAttemptDeadline});
      persist({}, out);
      break;
    case Step::kCommitting:
      if (failed_)
        fail_attempt(failure_, failed_peer_, out);
      else
        committed(out);
      break;
    case Step::kTellingRouter:
      told_router(out);
      break;
    case Step::kRevoking:
      abort_members(out);
      break;
    case Step::kAborting:
      tear_down(out);
      break;
    case Step::kWarningRouter:
      tear_down_members(out);
      break;
    case Step::kRollingBack:
    case Step::kTearingDown:
      torn_down(out);
      break;
    case Step::kReturningPort:
      end_epoch(out);
      break;
  }
}

void Gateway::on_timer(const port::TimerFired& in, Outbox& out) {
  if (in.timer == kAttemptDeadline) {
    if (step_ == Step::kExecuting) fail_attempt(Outcome::kTimedOut, {}, out);
    return;
  }
  if (in.timer == kWorkersDeadline) {
    if (step_ != Step::kIdle) return;
    if (connect_key_) callee_.reply(*connect_key_, ConnectReply{Outcome::kTimedOut, epoch_}, out);
    connect_key_.reset();
    if (update_) answer_update(Outcome::kTimedOut, out);
    return;
  }
  const Caller::FiredResult fired = caller_.on_timer(in, out);
  if (fired.what == Caller::Fired::kGaveUp) on_gave_up(fired.request, out);
  if (repairs_.on_timer(in, out).what == Caller::Fired::kGaveUp) ask_repair(out);
}

void Gateway::list_waits(WaitList& waits) const {
  for (const auto& [id, request] : caller_.pending())
    waits.push_back({request.to, "an answer to the gateway", id.value});
  for (const auto& [id, request] : repairs_.pending()) waits.push_back({request.to, "word of a repair", id.value});
  if (step_ != Step::kIdle || !wants_pair_) return;
  for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_.at(rank).alive) waits.push_back({workers_.at(rank).node, "a rank to start", rank});
  }
}

}  // namespace areal::proto
