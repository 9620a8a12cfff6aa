#include "engine/proto/rollout_pool.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace areal::proto {
namespace {

constexpr TimerId kRouteRetry{1};
constexpr std::uint64_t kRouteTimers = 1ULL << 32;
constexpr std::uint64_t kGenerateTimers = 2ULL << 32;
constexpr std::uint64_t kShardTimers = 3ULL << 32;

RolloutPoolOptions sound(RolloutPoolOptions options) {
  options.samples = std::max(options.samples, 1U);
  options.max_new_tokens = std::max<std::uint64_t>(options.max_new_tokens, 1);
  return options;
}

// No more groups are under work at once than the capacity formula lets.
std::size_t sample_limit(const RolloutPoolOptions& options) {
  const auto groups = static_cast<std::size_t>(std::max<std::int64_t>(1, options.limits.max_concurrent));
  return std::min(groups, options.groups) * options.samples;
}

// Shards being put are of groups in the table; shards being assigned are of one batch, which the table held.
std::size_t shard_limit(const RolloutPoolOptions& options) { return 2 * options.groups; }

void refuse(const port::MessageIn& message, Refusal reason, std::uint64_t detail, Outbox& out) {
  out.note(port::Refused{message.body.kind, reason, message.from, detail});
}

}  // namespace

RolloutPool::RolloutPool(const RolloutPoolOptions& options, ClusterMap cluster, RecoveredCount recovered)
    : options_(sound(options)),
      cluster_(std::move(cluster)),
      recovered_(recovered),
      staleness_(options_.limits),
      samples_(sample_limit(options_)),
      groups_(options_.groups),
      routes_({kRouteTimers, options_.timeout, options_.tries, sample_limit(options_)}),
      generates_({kGenerateTimers, options_.generate_timeout, options_.tries, sample_limit(options_)}),
      shards_({kShardTimers, options_.timeout, options_.tries, shard_limit(options_)}) {}

void RolloutPool::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    // Groups of an earlier incarnation may have left shards behind: their names are not used again.
    last_group_ = {std::uint64_t{started->incarnation - 1} << 32};
    routes_.start(started->incarnation);
    generates_.start(started->incarnation);
    shards_.start(started->incarnation);
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    on_message(*message, out);
  } else if (const auto* tell = std::get_if<port::TellIn>(&input)) {
    on_tell(*tell, out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    on_timer(*fired, out);
  } else if (const auto* done = std::get_if<port::ComputeDone>(&input)) {
    on_scored(*done, out);
  }
  admit(out);
}

// ---- Inputs ----

void RolloutPool::on_message(const port::MessageIn& message, Outbox& out) {
  if (message.kind != port::MessageKind::kReply) {
    const bool known = dispatch_record<SegmentReport>(
        message.body, [&](const SegmentReport& report) { on_report(message, report, out); });
    if (!known) refuse(message, Refusal::kUnknown, message.body.kind, out);
  } else if (const auto asked = routes_.answered(message, out)) {
    RouteReply reply{{}, Outcome::kRefused, {}, 0};  // Other words are no route.
    dispatch_record<RouteReply>(message.body, [&](const RouteReply& said) { reply = said; });
    on_routed(from_record<RouteRequest>(asked->body).sample, reply, out);
  } else if (const auto generated = generates_.answered(message, out)) {
    GenerateReply reply{{}, SegmentEnd::kFailed, 0, 0, {}};
    dispatch_record<GenerateReply>(message.body, [&](const GenerateReply& said) { reply = said; });
    on_generated(message, from_record<GenerateRequest>(generated->body).sample, reply, out);
  } else if (const auto stored = shards_.answered(message, out)) {
    on_shard_answer(*stored, message.body.kind == Ack::kKind, out);
  }
}

void RolloutPool::on_tell(const port::TellIn& tell, Outbox& out) {
  const bool known =
      dispatch_record<PausePool>(tell.body, [&](const PausePool&) { pause(out); }) ||
      dispatch_record<ResumePool>(tell.body, [&](const ResumePool&) { resume(out); }) ||
      dispatch_record<PoolVersion>(tell.body, [&](const PoolVersion& said) { on_version(said.version, out); }) ||
      dispatch_record<WantBatch>(tell.body, [&](const WantBatch& want) { on_want(want, out); }) ||
      dispatch_record<ResetPool>(tell.body, [&](const ResetPool& reset) { on_reset(reset, out); });
  if (known)
    begun_ = true;
  else
    out.note(port::Refused{tell.body.kind, Refusal::kUnknown, cluster_.controller, tell.from_slot.value});
}

void RolloutPool::on_timer(const port::TimerFired& fired, Outbox& out) {
  const bool sends = fired.timer.value >= kRouteTimers && fired.timer.value < kShardTimers;
  if (fired.timer == kRouteRetry) {
    retry_armed_ = false;
    ++refused_rounds_;
    if (!paused_) route_held(out);
  } else if (sends && paused_) {
    late_.push(fired.timer);
  } else if (const auto route = routes_.on_timer(fired, out); route.what == Caller::Fired::kGaveUp) {
    hold(from_record<RouteRequest>(route.request.body).sample, out);
  } else if (const auto made = generates_.on_timer(fired, out); made.what == Caller::Fired::kGaveUp) {
    hold(from_record<GenerateRequest>(made.request.body).sample, out);
  } else if (const auto shard = shards_.on_timer(fired, out); shard.what == Caller::Fired::kGaveUp) {
    on_shard_answer(shard.request, false, out);
  }
}

void RolloutPool::on_version(Version version, Outbox& out) {
  const auto said = static_cast<std::int64_t>(version);
  if (knows_version_ && said < staleness_.version()) {
    out.note(port::Refused{PoolVersion::kKind, Refusal::kVersionOrder, cluster_.controller, version});
    return;
  }
  // The first one may be that of a recovered run.
  if (knows_version_)
    staleness_.set_version(said);
  else
    staleness_.recover(said, recovered_);
  knows_version_ = true;
}

void RolloutPool::pause(Outbox& out) {
  paused_ = true;
  if (retry_armed_) out.push(port::DisarmTimer{kRouteRetry});
  retry_armed_ = false;
}

void RolloutPool::resume(Outbox& out) {
  if (!paused_) return;
  paused_ = false;
  while (!late_.empty()) on_timer({late_.pop()}, out);
  if (retry_armed_) out.push(port::DisarmTimer{kRouteRetry});
  retry_armed_ = false;
  refused_rounds_ = 0;
  route_held(out);
}

// ---- Samples ----

void RolloutPool::admit(Outbox& out) {
  while (begun_ && !paused_ && !resetting_ && staleness_.capacity() > 0 && !groups_.full()) {
    const SampleGroupId group{++last_group_.value};
    const StalenessCounters& counters = staleness_.counters();
    const StalenessLimits& limits = staleness_.limits();
    out.note(port::Admitted{group, static_cast<Version>(staleness_.version()), counters.running, counters.accepted,
                            limits.max_concurrent, limits.batch, limits.max_staleness});
    staleness_.enqueue();
    staleness_.submit();
    AREAL_CHECK(groups_.insert(group, SampleGroup{GroupPhase::kSampling, options_.samples, {}}));
    for (std::uint32_t index = 0; index < options_.samples; ++index) {
      const SampleId sample{(group.value - 1) * options_.samples + index + 1};
      AREAL_CHECK(samples_.insert(sample, SampleTask{SamplePhase::kHeld, group, {}, 0, {}}));
      route(sample, out);
    }
  }
}

void RolloutPool::route(SampleId sample, Outbox& out) {
  samples_.edit(sample, [](SampleTask& task) { task.phase = SamplePhase::kRouting; });
  routes_.ask(cluster_.router, kRouterSlot, RouteRequest{sample}, out);
}

void RolloutPool::hold(SampleId sample, Outbox& out) {
  samples_.edit(sample, [](SampleTask& task) { task.phase = SamplePhase::kHeld; });
  if (paused_ || retry_armed_) return;
  retry_armed_ = true;
  out.push(port::ArmTimer{kRouteRetry, retry_delay()});
}

// While no engine takes anything, asking often helps nobody.
Duration RolloutPool::retry_delay() const {
  Duration delay = options_.route_retry;
  for (std::uint32_t i = 0; i < refused_rounds_ && delay < options_.longest_route_retry; ++i) delay = delay * 2;
  return std::min(delay, options_.longest_route_retry);
}

void RolloutPool::route_held(Outbox& out) {
  std::vector<SampleId> held;
  for (const auto& entry : samples_) {
    if (entry.value.phase == SamplePhase::kHeld) held.push_back(entry.key);
  }
  for (const SampleId sample : held) route(sample, out);
}

void RolloutPool::on_routed(SampleId sample, const RouteReply& reply, Outbox& out) {
  if (paused_ || reply.outcome != Outcome::kOk || reply.engine.value >= cluster_.engines) return hold(sample, out);
  refused_rounds_ = 0;
  samples_.edit(sample, [&](SampleTask& task) {
    task.phase = SamplePhase::kGenerating;
    task.engine = reply.engine;
    task.pinned = reply.version;
  });
  const SampleTask& task = *samples_.find(sample);
  generates_.ask(cluster_.server(reply.engine), kServerSlot,
                 GenerateRequest{sample, reply.version, task.record.tokens, budget(task)}, out);
}

void RolloutPool::on_generated(const port::MessageIn& message, SampleId sample, const GenerateReply& reply,
                               Outbox& out) {
  // Segments of a request that the engine lost in a restart count against the budget already.
  const bool fits = reply.tokens <= budget(*samples_.find(sample));
  if (!fits || reply.end == SegmentEnd::kFrozen) {
    refuse(message, Refusal::kStaleAttempt, sample.value, out);
    return hold(sample, out);
  }
  if (reply.tokens > 0 || reply.end != SegmentEnd::kFailed) store(sample, reply, out);
  const bool used_up = budget(*samples_.find(sample)) == 0;
  const bool ended = reply.end == SegmentEnd::kStop || reply.end == SegmentEnd::kLength;
  if (ended || used_up)
    finish(sample, out);
  else if (reply.end == SegmentEnd::kAborted && !paused_)
    route(sample, out);
  else
    hold(sample, out);
}

void RolloutPool::on_report(const port::MessageIn& message, const SegmentReport& report, Outbox& out) {
  if (!reports_.admit(message, out)) return;
  const SampleTask* task = samples_.find(report.sample);
  const bool wanted = task != nullptr && task->phase == SamplePhase::kGenerating &&
                      cluster_.server(task->engine) == message.from && report.tokens <= budget(*task);
  if (wanted) {
    store(report.sample, {report.sample, SegmentEnd::kFrozen, report.tokens, report.version, report.digest}, out);
  } else {
    refuse(message, Refusal::kStaleAttempt, report.sample.value, out);
  }
  reports_.reply(Callee::key_of(message), Ack{}, out);
}

void RolloutPool::store(SampleId sample, const GenerateReply& segment, Outbox& out) {
  const SampleTask& task = *samples_.find(sample);
  out.note(port::SegmentStored{sample, task.engine, task.pinned, segment.version, segment.tokens, segment.end,
                               segment.digest});
  samples_.edit(sample, [&](SampleTask& changed) {
    changed.record.add_segment(segment.version, segment.tokens, segment.digest);
  });
}

void RolloutPool::list_waits(WaitList& waits) const {
  for (const Caller* caller : {&routes_, &generates_, &shards_}) {
    for (const auto& entry : caller->pending()) waits.push_back({entry.value.to, "reply", entry.key.value});
  }
  std::uint64_t held = 0;
  for (const auto& entry : samples_) held += entry.value.phase == SamplePhase::kHeld ? 1 : 0;
  if (paused_)
    waits.push_back({cluster_.controller, "resume", held});
  else if (held > 0)
    waits.push_back({cluster_.router, "engine to take samples", held});
  if (resetting_) waits.push_back({cluster_.store, "store to confirm", shards_.pending().size()});
  if (wanted_.batch != TrainBatchId{} && !wanted_.taken) waits.push_back({{}, "ready groups", ready_.size()});
}

}  // namespace areal::proto
