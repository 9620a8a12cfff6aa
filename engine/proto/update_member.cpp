#include "engine/proto/update_member.h"

#include <algorithm>

namespace areal::proto {
namespace {

// Bounds connecting and executing; one of the two runs at a time.
constexpr TimerId kDeadline{1};
constexpr std::uint32_t kIndexBytes = 4;  // With every element of a delta goes an int32.
// Operations and buffers of weight updates have numbers of their own, apart from other protocols of the node.
constexpr std::uint64_t kOpBase = 1ULL << 40;

// The groups of a training rank besides those of all: everybody who trains, and the copies of what it holds.
std::vector<SideGroup> sides_of(const MemberOptions& options) {
  std::vector<SideGroup> sides;
  if (!options.delta || options.role != Role::kTrainer) return sides;
  sides.push_back({0, options.role_rank, options.role_world});
  for (const ReplicaPlace& place : options.reconstruct->places) {
    const bool known = std::ranges::find(sides, place.group, &SideGroup::replica) != sides.end();
    if (place.world > 1 && !known) sides.push_back({place.group, place.rank, place.world});
  }
  return sides;
}

}  // namespace

UpdateMember::UpdateMember(MemberOptions options)
    : options_(std::move(options)), groups_(sides_of(options_)), callee_(options_.repeats) {}

MemberEvent UpdateMember::on_input(const Input& input, Outbox& out) {
  return std::visit(
      [&](const auto& in) -> MemberEvent {
        if constexpr (requires { on(in, out); }) return on(in, out);
        return {};
      },
      input);
}

MemberEvent UpdateMember::on(const port::MessageIn& in, Outbox& out) {
  if (!callee_.admit(in, out)) return {};
  MemberEvent event;
  dispatch_record<ReportMeta, InitGroups, Prepare>(in.body, [&](const auto& asked) { on_request(in, asked, out); });
  dispatch_record<Execute, Commit>(in.body, [&](const auto& asked) { event = on_request(in, asked, out); });
  dispatch_record<AbortUpdate>(in.body,
                               [&](const AbortUpdate& asked) { event = begin_end(in, asked.epoch, true, out); });
  dispatch_record<Teardown>(in.body, [&](const Teardown& asked) {
    const bool ends = asked.epoch == groups_.epoch() || phase_ == MemberPhase::kIdle;
    told_unproven_ = told_unproven_ || (ends && asked.unproven);
    event = begin_end(in, asked.epoch, false, out);
  });
  return event;
}

void UpdateMember::refuse(const port::MessageIn& in, Refusal reason, std::uint64_t detail, Outbox& out) const {
  out.note(port::Refused{in.body.kind, reason, in.from, detail});
}

void UpdateMember::set_loaded(Outbox& out) {
  loaded_ = true;
  if (meta_key_) answer_meta(out);
}

void UpdateMember::on_request(const port::MessageIn& in, const ReportMeta& /*asked*/, Outbox& out) {
  meta_key_ = Callee::key_of(in);
  if (loaded_) answer_meta(out);
}

void UpdateMember::answer_meta(Outbox& out) {
  callee_.reply(*meta_key_,
                MetaReport{options_.role, options_.role_rank, options_.engine, options_.role_world, version_,
                           options_.plan->tensors, options_.meta},
                out);
  meta_key_.reset();
}

void UpdateMember::on_request(const port::MessageIn& in, const InitGroups& asked, Outbox& out) {
  const RequestKey key = Callee::key_of(in);
  const bool idle = phase_ == MemberPhase::kIdle && groups_.state() == MemberGroups::State::kNone;
  if (!idle || asked.epoch <= groups_.epoch()) {
    refuse(in, Refusal::kWrongEpoch, asked.epoch, out);
    callee_.reply(key, InitDone{asked.epoch, Outcome::kRefused, {}}, out);
    return;
  }
  // The rank must be the one that this rank's plan was built for, or two ranks would claim one place (INV-19).
  if (asked.rank != options_.plan->rank || asked.rank >= asked.world) {
    refuse(in, Refusal::kRankMap, asked.rank, out);
    callee_.reply(key, InitDone{asked.epoch, Outcome::kRefused, {}}, out);
    return;
  }
  init_key_ = key;
  phase_ = MemberPhase::kConnecting;
  groups_.join(asked, out);
  note_plan(out);
  out.push(port::ArmTimer{kDeadline, options_.init_timeout});
}

void UpdateMember::note_plan(Outbox& out) const {
  const MemberPlan& plan = *options_.plan;
  const Epoch epoch = groups_.epoch();
  out.note(port::PlanBuilt{epoch, plan.rank, plan.sends, plan.operations, plan.expected, plan.covered, plan.duplicates,
                           plan.digest});
  for (const MemberPeer& peer : plan.peers) {
    out.note(port::PlanPeer{epoch, peer.sender, peer.receiver, plan.sends, peer.operations, peer.elements, peer.bytes,
                            peer.sequence});
  }
}

void UpdateMember::finish_connect(Outcome outcome, NodeId peer, Outbox& out) {
  out.push(port::DisarmTimer{kDeadline});
  phase_ = outcome == Outcome::kOk ? MemberPhase::kConnected : MemberPhase::kFailed;
  if (init_key_) callee_.reply(*init_key_, InitDone{groups_.epoch(), outcome, peer}, out);
  init_key_.reset();
}

void UpdateMember::on_request(const port::MessageIn& in, const Prepare& asked, Outbox& out) {
  const RequestKey key = Callee::key_of(in);
  const AttemptKey attempt{asked.epoch, asked.version, asked.attempt};
  const MemberPlan& plan = *options_.plan;
  Prepared answer{
      asked.epoch, asked.version,   asked.attempt, Outcome::kRefused,
      version_,    plan.elements(), plan.bytes(),  plan.passes.empty() ? DType::kBf16 : plan.passes.front().wire,
      plan.tensors};
  const bool connected = phase_ == MemberPhase::kConnected || phase_ == MemberPhase::kPrepared;
  if (!connected || asked.epoch != groups_.epoch()) {
    refuse(in, Refusal::kWrongEpoch, asked.epoch, out);
  } else if (attempt <= newest_) {
    refuse(in, Refusal::kStaleAttempt, asked.attempt, out);
  } else {
    answer.outcome = Outcome::kOk;
    attempt_ = newest_ = attempt;
    phase_ = MemberPhase::kPrepared;
  }
  callee_.reply(key, answer, out);
}

MemberEvent UpdateMember::on_request(const port::MessageIn& in, const Execute& asked, Outbox& out) {
  const AttemptKey attempt{asked.epoch, asked.version, asked.attempt};
  if (!options_.may_enter(phase_, attempt_, attempt)) {
    refuse(in, Refusal::kStaleAttempt, asked.attempt, out);
    Executed answer{asked.epoch, asked.version, asked.attempt, Outcome::kRefused, {}, 0};
    answer.mode = asked.mode;
    callee_.reply(Callee::key_of(in), answer, out);
    return {};
  }
  execute_key_ = Callee::key_of(in);
  phase_ = MemberPhase::kExecuting;
  posted_ = 0;
  batches_.clear();
  asked_ = {asked.mode, asked.reason, asked.base};
  out.note(port::CollectiveEntered{asked.epoch, asked.version, asked.attempt, rank()});
  out.push(port::ArmTimer{kDeadline, options_.update_timeout});
  return {What::kEntered, {}, {}};
}

MemberEvent UpdateMember::on_request(const port::MessageIn& in, const Commit& asked, Outbox& out) {
  const AttemptKey attempt{asked.epoch, asked.version, asked.attempt};
  if (phase_ != MemberPhase::kExecuted || attempt != attempt_) {
    refuse(in, Refusal::kStaleAttempt, asked.attempt, out);
    callee_.reply(Callee::key_of(in), Committed{asked.epoch, asked.version, asked.attempt, Outcome::kRefused}, out);
    return {};
  }
  commit_key_ = Callee::key_of(in);
  return {What::kCommit, {}, {}};
}

void UpdateMember::commit(Outbox& out) {
  version_ = attempt_.version;
  phase_ = MemberPhase::kConnected;
  callee_.reply(*commit_key_, Committed{attempt_.epoch, attempt_.version, attempt_.attempt, Outcome::kOk}, out);
  commit_key_.reset();
}

void UpdateMember::fail(Outcome outcome, NodeId peer, Outbox& out) {
  if (phase_ != MemberPhase::kExecuting) return;
  phase_ = MemberPhase::kFailed;
  out.push(port::DisarmTimer{kDeadline});
  Executed answer{attempt_.epoch, attempt_.version, attempt_.attempt, outcome, peer, 0};
  answer.mode = asked_.mode;
  callee_.reply(*execute_key_, answer, out);
  execute_key_.reset();
}

void UpdateMember::succeed(std::uint64_t bytes, UpdateMode mode, FullReason reason, Outbox& out) {
  phase_ = MemberPhase::kExecuted;
  out.push(port::DisarmTimer{kDeadline});
  Executed answer{attempt_.epoch, attempt_.version, attempt_.attempt, Outcome::kOk, {}, bytes};
  answer.mode = mode;
  answer.reason = reason;
  callee_.reply(*execute_key_, answer, out);
  execute_key_.reset();
}

MemberEvent UpdateMember::begin_end(const port::MessageIn& in, Epoch epoch, bool abort, Outbox& out) {
  if (epoch != groups_.epoch() && phase_ != MemberPhase::kIdle) {  // It does not end what runs here.
    refuse(in, Refusal::kWrongEpoch, epoch, out);
    if (abort) {
      callee_.reply(Callee::key_of(in), UpdateAborted{epoch, false}, out);
    } else {
      callee_.reply(Callee::key_of(in), TornDown{epoch}, out);
    }
    return {};
  }
  end_key_ = Callee::key_of(in);
  end_is_abort_ = abort;
  if (phase_ == MemberPhase::kIdle) return {What::kEnded, {}, {}};  // Nothing is left here.
  out.push(port::DisarmTimer{kDeadline});
  if (init_key_) finish_connect(Outcome::kAborted, {}, out);
  if (phase_ == MemberPhase::kExecuting) fail(Outcome::kAborted, {}, out);
  phase_ = MemberPhase::kEnding;
  commit_key_.reset();
  const bool is_quiet = groups_.state() == MemberGroups::State::kReady && batches_.empty();
  batches_.clear();
  if (running_op_.value != 0) out.push(port::StopCompute{running_op_});
  if (abort || !is_quiet) {  // The abort of a teardown may have been lost: nobody leaves a group that is at work.
    groups_.abort(out);
  } else {
    groups_.leave(out);
  }
  return check_end(out);
}

// Staging goes back only when no group can touch it any more, and everything has ended when it is gone.
MemberEvent UpdateMember::check_end(Outbox& out) {
  if (phase_ != MemberPhase::kEnding) return {};
  const bool quiet = groups_.state() == MemberGroups::State::kNone && running_op_.value == 0;
  if (!quiet) return {};
  if (staging_.value != 0) {
    if (!releasing_) release_staging(out);
    return {};
  }
  phase_ = MemberPhase::kIdle;
  return {What::kEnded, {}, {}};
}

void UpdateMember::finish_end(bool quarantined, Outbox& out) {
  if (!end_key_) return;
  if (end_is_abort_) {
    callee_.reply(*end_key_, UpdateAborted{groups_.epoch(), quarantined}, out);
  } else {
    callee_.reply(*end_key_, TornDown{groups_.epoch()}, out);
  }
  end_key_.reset();
  told_unproven_ = false;
}

MemberEvent UpdateMember::on(const port::TimerFired& in, Outbox& out) {
  if (in.timer != kDeadline) return {};
  if (phase_ == MemberPhase::kConnecting) finish_connect(Outcome::kTimedOut, {}, out);
  if (phase_ == MemberPhase::kExecuting) fail(Outcome::kTimedOut, {}, out);
  return {};
}

MemberEvent UpdateMember::on(const port::GroupJoined& in, Outbox& out) {
  if (phase_ == MemberPhase::kConnecting && groups_.on_joined(in, out) == MemberGroups::Event::kFailed) {
    finish_connect(in.outcome, {}, out);
  }
  return {};
}

MemberEvent UpdateMember::on(const port::BatchDone& in, Outbox& out) {
  if (phase_ == MemberPhase::kConnecting) {
    const MemberGroups::Event event = groups_.on_batch(in, out);
    if (event == MemberGroups::Event::kReady) {
      finish_connect(Outcome::kOk, {}, out);
      return {What::kConnected, {}, {}};
    }
    if (event == MemberGroups::Event::kFailed) finish_connect(in.outcome, in.peer, out);
    return {};
  }
  if (phase_ != MemberPhase::kExecuting || std::erase(batches_, in.batch) == 0) return {};
  if (in.outcome != Outcome::kOk) {
    fail(in.outcome, in.peer, out);
    return {};
  }
  return {What::kBatch, in, {}};
}

MemberEvent UpdateMember::on(const port::GroupAborted& in, Outbox& out) {
  return groups_.on_aborted(in) == MemberGroups::Event::kAborted ? check_end(out) : MemberEvent{};
}

MemberEvent UpdateMember::on(const port::ComputeDone& in, Outbox& out) {
  if (in.op != running_op_) return {};
  running_op_ = {};
  if (phase_ == MemberPhase::kEnding) return check_end(out);
  return {What::kCompute, {}, in};
}

MemberEvent UpdateMember::on(const port::BufferReady& in, Outbox& out) {
  if (in.buffer != staging_) return {};
  if (in.outcome != Outcome::kOk) {
    staging_ = {};
    releasing_ = false;
    fail(in.outcome, {}, out);
    return check_end(out);
  }
  return phase_ == MemberPhase::kExecuting ? MemberEvent{What::kStaged, {}, {}} : MemberEvent{};
}

MemberEvent UpdateMember::on(const port::BufferReleased& in, Outbox& out) {
  if (in.buffer != staging_) return {};
  staging_ = {};
  releasing_ = false;
  return check_end(out);
}

void UpdateMember::reserve_staging(Outbox& out) {
  if (staging_.value != 0 && !releasing_) return;
  releasing_ = false;  // What is still being given back has another number, and goes without us.
  staging_ = BufferId{kOpBase + ++next_buffer_};
  out.push(port::ReserveBuffer{staging_, options_.staging_bytes, port::MemoryTag::kStaging});
}

void UpdateMember::release_staging(Outbox& out) {
  releasing_ = true;
  out.push(port::ReleaseBuffer{staging_});
}

void UpdateMember::start_compute(port::ComputeKind what, const ComputeWish& wish, Outbox& out) {
  running_op_ = OpId{kOpBase + ++next_op_};
  out.push(port::StartCompute{.op = running_op_,
                              .what = what,
                              .version = attempt_.version,
                              .buffer = staging_,
                              .epoch = groups_.epoch(),
                              .seed = wish.seed,
                              .amount = wish.amount,
                              .rate = wish.rate});
}

bool UpdateMember::post_next(UpdateMode mode, std::uint64_t updates, Outbox& out) {
  const MemberPlan& plan = *options_.plan;
  const bool delta = mode == UpdateMode::kDelta;
  std::uint32_t part = 0;
  port::Round round = port::Round::kDense;
  do {
    part = delta ? posted_ / 2 : posted_;
    if (part >= plan.passes.size()) return false;
    if (delta) round = posted_ % 2 == 0 ? port::Round::kCounts : port::Round::kData;
    ++posted_;
  } while (!options_.policies.enters(round, plan.passes[part]));
  const MemberPass& pass = plan.passes[part];
  batches_.push_back(groups_.next_batch());
  port::PostBatch batch{.group = payload_group(groups_.epoch()),
                        .batch = batches_.back(),
                        .kind = plan.sends ? port::BatchKind::kSend : port::BatchKind::kReceive,
                        .tag = (std::uint64_t{attempt_.attempt} << 8) | posted_,
                        .round = round,
                        .part = part,
                        .version = attempt_.version,
                        .buffer = staging_,
                        .dtype = pass.wire,
                        .storage_dtype = pass.storage};
  if (!delta) {
    batch.elements = pass.elements;
    batch.bytes = pass.bytes;
  } else if (round == port::Round::kData) {
    batch.elements = updates;
    batch.bytes = updates * (kIndexBytes + size_of(pass.wire));
  }
  out.push(batch);
  return true;
}

void UpdateMember::meet_in(GroupId group, const MeetingWish& wish, Outbox& out) {
  batches_.push_back(groups_.next_batch());
  out.push(port::PostBatch{.group = group,
                           .batch = batches_.back(),
                           .kind = wish.kind,
                           .tag = meeting_tag(attempt_.version, attempt_.attempt, wish.meeting),
                           .version = attempt_.version,
                           .value = wish.value,
                           .count = wish.count});
}

void UpdateMember::post_reductions(std::uint32_t window, std::uint64_t contributed, bool force, Outbox& out) {
  constexpr std::uint64_t kReductions = 2;  // Of one parameter.
  const ReconstructPlan& plan = *options_.reconstruct;
  for (std::size_t kind = 0; kind < kReplicaKinds; ++kind) {
    const WindowShare& share = plan.windows[window].shares[kind];
    const ReplicaPlace& place = plan.places[kind];
    // What nobody else holds needs no sum, and what is not here at all is on none of the copies.
    if (place.world <= 1 || share.parameters == 0) continue;
    batches_.push_back(groups_.next_batch());
    out.push(port::PostBatch{.group = replica_group(groups_.epoch(), place.group),
                             .batch = batches_.back(),
                             .kind = port::BatchKind::kReduce,
                             .tag = share.hash,
                             .part = window,
                             .version = attempt_.version,
                             .dtype = DType::kF32,
                             .storage_dtype = DType::kF32,
                             .elements = share.parameters * kReductions,
                             .bytes = share.bytes,
                             .value = contributed,
                             .count = force ? 1U : 0U});
  }
}

void UpdateMember::list_waits(WaitList& waits) const {
  if (running_op_.value != 0) waits.push_back({{}, "compute", running_op_.value});
  if (!batches_.empty()) waits.push_back({{}, "batch of the update", attempt_.version});
  if (phase_ == MemberPhase::kConnecting) waits.push_back({{}, "group of the new epoch", groups_.epoch()});
}

}  // namespace areal::proto
