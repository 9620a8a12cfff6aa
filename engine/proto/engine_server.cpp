#include "engine/proto/engine_server.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace areal::proto {
namespace {

constexpr std::size_t kMaxPauses = 16;

void refuse(const port::MessageIn& message, Refusal reason, std::uint64_t detail, Outbox& out) {
  out.note(port::Refused{message.body.kind, reason, message.from, detail});
}

}  // namespace

EngineServer::EngineServer(const EngineServerOptions& options, ClusterMap cluster, LockPolicy lock)
    : options_(options),
      cluster_(std::move(cluster)),
      decodes_(options.requests),
      lock_(lock),
      reports_(options.reports) {}

void EngineServer::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    next_op_ = std::max(next_op_, std::uint64_t{started->incarnation} << 32);
    reports_.start(started->incarnation);
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    on_message(*message, out);
  } else if (const auto* tell = std::get_if<port::TellIn>(&input)) {
    on_tell(*tell, out);
  } else if (const auto* done = std::get_if<port::ComputeDone>(&input)) {
    on_compute(*done, out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    const Caller::FiredResult result = reports_.on_timer(*fired, out);
    if (result.what == Caller::Fired::kGaveUp) on_reported(result.request, out);
  }
  settle(out);
  check_invariants();
}

void EngineServer::on_message(const port::MessageIn& message, Outbox& out) {
  if (message.kind == port::MessageKind::kReply) {
    if (const auto report = reports_.answered(message, out)) on_reported(*report, out);
    return;
  }
  if (message.from != cluster_.controller) return refuse(message, Refusal::kUnknown, message.body.kind, out);
  const Record& body = message.body;
  const bool known =
      dispatch_record<GenerateRequest>(body, [&](const GenerateRequest& r) { on_generate(message, r, out); }) ||
      dispatch_record<PauseEngine>(body, [&](const PauseEngine& pause) { on_pause(message, pause, out); }) ||
      dispatch_record<ContinueEngine>(body, [&](const ContinueEngine&) { on_continue(message, out); }) ||
      dispatch_record<SetVersion>(body, [&](const SetVersion& set) { on_set_version(message, set, out); });
  if (!known) refuse(message, Refusal::kUnknown, body.kind, out);
}

// ---- Requests ----

void EngineServer::on_generate(const port::MessageIn& message, const GenerateRequest& request, Outbox& out) {
  if (!generates_.admit(message, out)) return;
  replace_older(request.sample, out);
  if (loading_) return refuse_generate(message, request, Refusal::kNotInitialized, out);
  if (quarantined_ || version_ < request.pinned) return refuse_generate(message, request, Refusal::kUnsynced, out);
  const bool aborts = paused_ && mode_ == PauseMode::kAbortResubmit;
  if (aborts || decodes_.full()) return refuse_generate(message, request, Refusal::kBusy, out);
  if (request.budget == 0) return refuse_generate(message, request, Refusal::kUnknown, out);
  Decode decode;
  decode.request = Callee::key_of(message);
  decode.sample = request.sample;
  decode.pinned = request.pinned;
  decode.budget = request.budget;
  AREAL_CHECK(decodes_.insert(OpId{++next_op_}, decode));
}

void EngineServer::refuse_generate(const port::MessageIn& message, const GenerateRequest& request, Refusal reason,
                                   Outbox& out) {
  refuse(message, reason, request.sample.value, out);
  generates_.reply(Callee::key_of(message), GenerateReply{request.sample, SegmentEnd::kFailed, 0, version_, {}}, out);
}

// The pool gave up an earlier request for the same sample; its tokens would be counted twice.
void EngineServer::replace_older(SampleId sample, Outbox& out) {
  std::vector<OpId> older;
  for (const auto& entry : decodes_) {
    if (entry.value.sample == sample && !entry.value.unwanted) older.push_back(entry.key);
  }
  for (const OpId op : older) {
    const Decode decode = *decodes_.find(op);
    const bool runs = decode.phase == DecodePhase::kDecoding || decode.phase == DecodePhase::kParked;
    if (!runs) {
      decodes_.erase(op);
      continue;
    }
    if (!decode.stopping) out.push(port::StopCompute{op});
    decodes_.edit(op, [](Decode& changed) { changed.stopping = changed.unwanted = true; });
  }
  if (older.empty()) return;
  reports_.forget_if(
      [&](const PendingRequest& pending) { return from_record<SegmentReport>(pending.body).sample == sample; }, out);
}

void EngineServer::on_set_version(const port::MessageIn& message, const SetVersion& set, Outbox& out) {
  if (!versions_.admit(message, out)) return;
  const bool is_new_history = set.training_epoch > training_epoch_;
  if (set.training_epoch < training_epoch_ || (!is_new_history && set.version < published_)) {
    refuse(message, Refusal::kVersionOrder, set.version, out);
  } else {
    published_ = set.version;
    training_epoch_ = set.training_epoch;
  }
  versions_.reply(Callee::key_of(message), Ack{}, out);
}

// ---- Pause ----

bool EngineServer::admit_pause(const port::MessageIn& message, Outbox& out) {
  if (!pauses_.admit(message, out)) return false;
  if (message.request < newest_pause_) {
    refuse(message, Refusal::kStaleAttempt, message.request.value, out);
    return false;
  }
  newest_pause_ = message.request;
  return true;
}

void EngineServer::on_pause(const port::MessageIn& message, const PauseEngine& pause, Outbox& out) {
  if (!admit_pause(message, out)) return;
  if (pausing_.size() >= kMaxPauses) {
    refuse(message, Refusal::kBusy, pausing_.size(), out);
    pauses_.reply(Callee::key_of(message), EnginePaused{Outcome::kRefused, was_running_}, out);
    return;
  }
  pausing_.push_back(Callee::key_of(message));
  if (paused_ && mode_ == pause.mode) return;
  if (!paused_) was_running_ = count(DecodePhase::kDecoding);
  paused_ = true;
  mode_ = pause.mode;
  out.note(port::PauseChanged{options_.engine, true, mode_, was_running_});
  if (mode_ == PauseMode::kAbortResubmit)
    stop_all(out);
  else
    park_all(out);
}

void EngineServer::on_continue(const port::MessageIn& message, Outbox& out) {
  if (!admit_pause(message, out)) return;
  for (const RequestKey& key : pausing_) pauses_.reply(key, EnginePaused{Outcome::kAborted, was_running_}, out);
  pausing_.clear();
  if (paused_) {
    paused_ = false;
    out.note(port::PauseChanged{options_.engine, false, mode_, count(DecodePhase::kParked)});
  }
  pauses_.reply(Callee::key_of(message), EngineContinued{Outcome::kOk}, out);
}

void EngineServer::park_all(Outbox& out) {
  if (frozen_) return;
  frozen_ = true;
  out.push(port::FreezeCompute{true});
  for (const auto& entry : decodes_) {
    if (entry.value.phase != DecodePhase::kDecoding || entry.value.stopping) continue;
    decodes_.edit(entry.key, [](Decode& decode) { ++decode.closes_due; });
  }
}

// Ends everything under work; what was queued goes elsewhere.
void EngineServer::stop_all(Outbox& out) {
  std::vector<OpId> queued;
  for (const auto& entry : decodes_) {
    const Decode& decode = entry.value;
    if (decode.phase == DecodePhase::kQueued) queued.push_back(entry.key);
    if (decode.phase == DecodePhase::kQueued || decode.phase == DecodePhase::kEnded || decode.stopping) continue;
    out.push(port::StopCompute{entry.key});
    decodes_.edit(entry.key, [](Decode& changed) { changed.stopping = true; });
  }
  for (const OpId op : queued) {
    finish(op, GenerateReply{decodes_.find(op)->sample, SegmentEnd::kFailed, 0, version_, {}}, out);
  }
}

// ---- Decoding ----

void EngineServer::on_compute(const port::ComputeDone& done, Outbox& out) {
  const Decode* found = decodes_.find(done.op);
  if (found == nullptr || done.what != port::ComputeKind::kGenerate) return;
  const Decode decode = *found;
  if (decode.phase != DecodePhase::kDecoding && decode.phase != DecodePhase::kParked) return;
  const SegmentEnd end = segment_end(done, decode.made + done.count, decode.budget);
  if (done.count > 0 || (end != SegmentEnd::kFrozen && end != SegmentEnd::kFailed)) {
    out.note(port::Decoded{decode.sample, options_.engine, decode.version, done.count, end, done.digest});
  }
  if (end == SegmentEnd::kFrozen) return close_segment(done.op, done, out);
  if (decode.unwanted) {
    decodes_.erase(done.op);
    return;
  }
  const std::uint64_t tokens = end == SegmentEnd::kFailed ? 0 : done.count;
  finish(done.op, GenerateReply{decode.sample, end, tokens, decode.version, done.digest}, out);
}

void EngineServer::close_segment(OpId op, const port::ComputeDone& done, Outbox& out) {
  const Decode decode = *decodes_.find(op);
  bool reports = done.count > 0 && !decode.unwanted;
  if (reports && reports_.pending().full()) {
    reports = false;
    out.note(port::Refused{SegmentReport::kKind, Refusal::kBusy, cluster_.controller, decode.sample.value});
  }
  if (reports) {
    reports_.ask(cluster_.controller, kPoolSlot, SegmentReport{decode.sample, done.count, decode.version, done.digest},
                 out);
  }
  decodes_.edit(op, [&](Decode& changed) {
    changed.made += done.count;
    changed.reports += reports ? 1 : 0;
    if (changed.closes_due > 0) --changed.closes_due;
    if (changed.phase == DecodePhase::kParked) return;
    if (frozen_ && changed.closes_due == 0)
      changed.phase = DecodePhase::kParked;
    else
      changed.version = version_;
  });
}

void EngineServer::finish(OpId op, const GenerateReply& reply, Outbox& out) {
  const Decode decode = *decodes_.find(op);
  if (decode.reports > 0) {
    decodes_.edit(op, [&](Decode& changed) {
      changed.phase = DecodePhase::kEnded;
      changed.answer = to_record(reply);
    });
    return;
  }
  decodes_.erase(op);
  generates_.reply(decode.request, reply, out);
}

// A report was answered, or given up.
void EngineServer::on_reported(const PendingRequest& report, Outbox& out) {
  const SampleId sample = from_record<SegmentReport>(report.body).sample;
  for (const auto& entry : decodes_) {
    if (entry.value.sample != sample || entry.value.unwanted || entry.value.reports == 0) continue;
    const OpId op = entry.key;
    decodes_.edit(op, [](Decode& decode) { --decode.reports; });
    const Decode decode = *decodes_.find(op);
    if (decode.reports == 0 && decode.phase == DecodePhase::kEnded) {
      decodes_.erase(op);
      generates_.reply_record(decode.request, decode.answer, out);
    }
    return;
  }
}

// ---- Weights ----

void EngineServer::on_tell(const port::TellIn& tell, Outbox& out) {
  const bool from_self = tell.from_slot == kServerSlot;
  const bool known =
      from_self ? dispatch_record<AcquireWriter>(
                      tell.body,
                      [&](const AcquireWriter& acquire) { follow_lock(lock_.acquire(acquire.version, view()), out); })
                : dispatch_record<WantWrite>(
                      tell.body, [&](const WantWrite& want) { follow_lock(lock_.want(want.version, view()), out); }) ||
                      dispatch_record<WriteEnded>(tell.body,
                                                  [&](const WriteEnded& ended) {
                                                    if (ended.ok)
                                                      lock_.ended(ended.version, version_);
                                                    else
                                                      quarantine(out);
                                                  }) ||
                      dispatch_record<WeightsCommitted>(tell.body,
                                                        [&](const WeightsCommitted& committed) {
                                                          version_ = committed.version;
                                                          loading_ = false;
                                                          quarantined_ = false;
                                                          lock_.committed(version_);
                                                        }) ||
                      dispatch_record<WeightsUnproven>(tell.body, [&](const WeightsUnproven&) { quarantine(out); });
  if (!known) {
    const NodeId self = cluster_.server(options_.engine);
    out.note(port::Refused{tell.body.kind, Refusal::kUnknown, self, tell.from_slot.value});
  }
}

void EngineServer::quarantine(Outbox& out) {
  quarantined_ = true;
  lock_.drop();
  stop_all(out);
}

void EngineServer::follow_lock(WriteLock::Next next, Outbox& out) {
  switch (next) {
    case WriteLock::Next::kNothing:
      break;
    case WriteLock::Next::kGrant:
      out.tell(kReceiverSlot, WriteGranted{lock_.version()});
      break;
    case WriteLock::Next::kAcquireLater:
      out.tell(kServerSlot, AcquireWriter{lock_.version()});
      break;
  }
}

void EngineServer::settle(Outbox& out) {
  follow_lock(lock_.readers_changed(view()), out);
  if (!pausing_.empty() && count(DecodePhase::kDecoding) == 0) {
    for (const RequestKey& key : pausing_) pauses_.reply(key, EnginePaused{Outcome::kOk, was_running_}, out);
    pausing_.clear();
  }
  if (can_decode()) open(out);
}

// Thaws what is parked and begins what is queued.
void EngineServer::open(Outbox& out) {
  if (frozen_) {
    frozen_ = false;
    out.push(port::FreezeCompute{false});
    for (const auto& entry : decodes_) {
      if (entry.value.phase != DecodePhase::kParked || entry.value.stopping) continue;
      decodes_.edit(entry.key, [&](Decode& decode) {
        decode.phase = DecodePhase::kDecoding;
        decode.version = version_;
      });
    }
  }
  std::vector<OpId> queued;
  for (const auto& entry : decodes_) {
    if (entry.value.phase == DecodePhase::kQueued) queued.push_back(entry.key);
  }
  for (const OpId op : queued) {
    const Decode decode = *decodes_.find(op);
    if (decode.pinned > version_) {
      finish(op, GenerateReply{decode.sample, SegmentEnd::kFailed, 0, version_, {}}, out);
      continue;
    }
    decodes_.edit(op, [&](Decode& changed) {
      changed.phase = DecodePhase::kDecoding;
      changed.version = version_;
    });
    port::StartCompute start{.op = op, .what = port::ComputeKind::kGenerate};
    start.version = version_;
    start.seed = decode.sample.value;
    start.amount = decode.budget;
    out.push(start);
  }
}

// ---- What is so ----

bool EngineServer::can_decode() const { return !loading_ && !quarantined_ && !paused_ && lock_.lets_decode(); }

std::uint32_t EngineServer::count(DecodePhase phase) const {
  std::uint32_t sum = 0;
  for (const auto& entry : decodes_) sum += entry.value.phase == phase ? 1 : 0;
  return sum;
}

LockView EngineServer::view() const { return {paused_, count(DecodePhase::kDecoding), count(DecodePhase::kParked)}; }

void EngineServer::check_invariants() const {
  if (!can_decode()) return;
  AREAL_CHECK(!frozen_);
  AREAL_CHECK(count(DecodePhase::kQueued) == 0);
}

void EngineServer::list_waits(WaitList& waits) const {
  const NodeId self = cluster_.server(options_.engine);
  const std::uint32_t decoding = count(DecodePhase::kDecoding);
  const std::uint32_t held = count(DecodePhase::kParked) + count(DecodePhase::kQueued);
  if (!pausing_.empty()) waits.push_back({{}, "decodes to stop", decoding});
  if (lock_.is_behind_parked(view()))
    waits.push_back({self, "readers", lock_.version()});
  else if (lock_.phase() == WriterPhase::kWaiting)
    waits.push_back({{}, "readers", lock_.version()});
  if (lock_.phase() == WriterPhase::kWriting) waits.push_back({{}, "write to end", lock_.version()});
  if (lock_.phase() == WriterPhase::kUncommitted) waits.push_back({cluster_.gateway, "commit", lock_.version()});
  if (paused_ && held > 0) waits.push_back({cluster_.controller, "continue", held});
  for (const auto& entry : reports_.pending()) waits.push_back({entry.value.to, "answer to report", entry.key.value});
}

}  // namespace areal::proto
