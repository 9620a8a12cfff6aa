#include "tests/property/rollout_world.h"

#include <algorithm>

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)

ClusterMap cluster_of(const RolloutWorldOptions& options) { return rollout_cluster(options.engines); }

RolloutPoolOptions pool_options(const RolloutWorldOptions& options) {
  RolloutPoolOptions out;
  out.limits = options.limits;
  out.samples = options.samples;
  out.max_new_tokens = RolloutWorld::kMaxTokens;
  out.tries = 4;
  return out;
}

PauseGateOptions gate_options(const RolloutWorldOptions& options) {
  PauseGateOptions out;
  out.mode = options.mode;
  out.calls.tries = 6;
  return out;
}

// Of the weights of one version.
Digest128 weights(Version version) { return {0xAB, version + 1}; }

}  // namespace

RolloutWorld::RolloutWorld(const RolloutWorldOptions& options, std::uint64_t seed)
    : options_(options),
      cluster_(cluster_of(options)),
      rng_(seed),
      pool_(pool_options(options), cluster_),
      gate_(gate_options(options), cluster_, options.verdict),
      router_(cluster_) {
  for (std::size_t engine = 0; engine < options.engines; ++engine) engines_.emplace_back(make_server(engine));
  give({kController, kPoolSlot}, port::Started{1, 0, 1});
  give({kController, kPauseGateSlot}, port::Started{1, 0, 1});
  for (std::size_t engine = 0; engine < options.engines; ++engine) {
    give({server_node(engine), kServerSlot}, port::Started{1, 0, 1});
    engines_[engine].tells.push_back({kReceiverSlot, to_record(WeightsCommitted{0})});
  }
  controller_tells_.push_back({{kController, kPoolSlot}, {kTrainLoopSlot, to_record(PoolVersion{0})}});
  controller_tells_.push_back({{kController, kPoolSlot}, {kTrainLoopSlot, to_record(WantBatch{TrainBatchId{1}, 0})}});
  prove_members(0);
  flights_.push_back(
      {{kRouter, kRouterSlot},
       {kController, 1, kTrainLoopSlot, port::MessageKind::kRequest, {++last_request_}, to_record(SetVersion{0})},
       true});
}

EngineServer RolloutWorld::make_server(std::size_t engine) const {
  EngineServerOptions options;
  options.engine = EngineId{engine};
  options.requests = 16;
  options.reports.tries = 4;
  return EngineServer(options, cluster_, options_.lock);
}

RolloutWorld::Engine* RolloutWorld::engine_at(NodeId node) {
  for (std::size_t engine = 0; engine < engines_.size(); ++engine) {
    if (server_node(engine) == node) return &engines_[engine];
  }
  return nullptr;
}

// ---- Protocols and what they ask for ----

template <class P>
void RolloutWorld::feed(P& protocol, Where where, const Input& input) {
  Outbox out;
  protocol.step(input, out);
  for (const Effect& effect : out.effects()) carry_out(where, effect);
}

void RolloutWorld::give(Where where, const Input& input) {
  if (Engine* engine = engine_at(where.node); engine != nullptr)
    feed(engine->server, where, input);
  else if (where == Where{kController, kPoolSlot})
    feed(pool_, where, input);
  else if (where == Where{kController, kPauseGateSlot})
    feed(gate_, where, input);
  else if (where == Where{kRouter, kRouterSlot})
    feed(router_, where, input);
}

void RolloutWorld::carry_out(Where from, const Effect& effect) {
  const auto is_timer = [&](TimerId timer) {
    return [from, timer](const auto& armed) { return armed.first == from && armed.second == timer; };
  };
  if (const auto* send = std::get_if<port::Send>(&effect))
    on_send(from, *send);
  else if (const auto* tell = std::get_if<port::Tell>(&effect))
    on_tell(from, *tell);
  else if (const auto* start = std::get_if<port::StartCompute>(&effect))
    on_start(from, *start);
  else if (const auto* note = std::get_if<port::Note>(&effect))
    on_note(note->body);
  else if (const auto* arm = std::get_if<port::ArmTimer>(&effect)) {
    std::erase_if(timers_, is_timer(arm->timer));
    timers_.push_back({from, arm->timer});
  } else if (const auto* disarm = std::get_if<port::DisarmTimer>(&effect)) {
    std::erase_if(timers_, is_timer(disarm->timer));
  } else if (const auto* freeze = std::get_if<port::FreezeCompute>(&effect)) {
    Engine& engine = *engine_at(from.node);
    if (freeze->frozen && !engine.frozen) {
      for (std::size_t op = 0; op < engine.ops.size(); ++op) finish_op(engine, op, Outcome::kOk, true);
    }
    engine.frozen = freeze->frozen;
  } else if (const auto* stop = std::get_if<port::StopCompute>(&effect)) {
    Engine& engine = *engine_at(from.node);
    for (std::size_t op = 0; op < engine.ops.size(); ++op) {
      if (engine.ops[op].op == stop->op) return finish_op(engine, op, Outcome::kAborted, false);
    }
  }
}

void RolloutWorld::on_send(Where from, const port::Send& send) {
  const bool new_work = send.body.kind == RouteRequest::kKind || send.body.kind == GenerateRequest::kKind;
  if (pool_paused_ && new_work && from == Where{kController, kPoolSlot}) breaks("the pool sent while it was paused");
  const Engine* engine = engine_at(from.node);
  const Incarnation incarnation = engine != nullptr ? engine->incarnation : 1;
  const Flight flight{{send.to, send.to_slot}, {from.node, incarnation, from.slot, send.kind, send.request, send.body}};
  const std::uint64_t fate = rng_.draw_below(100);
  if (!calm_ && fate < options_.loss) return;
  flights_.push_back(flight);
  if (!calm_ && fate >= 100 - options_.repeats) flights_.push_back(flight);
}

void RolloutWorld::on_tell(Where from, const port::Tell& tell) {
  if (from.node != kController) {
    Engine& engine = *engine_at(from.node);
    if (tell.to_slot == kServerSlot) {
      engine.tells.push_back({from.slot, tell.body});
      return;
    }
    if (engine.write != Write::kAsked) return;  // Granted: the receiver writes.
    if (!engine.ops.empty() && !engine.frozen) breaks("a decode ran while weights were written");
    engine.holds = published_ + 1;
    engine.write = Write::kDone;
    engine.tells.push_back({kReceiverSlot, to_record(WriteEnded{engine.holds, true})});
    engine.tells.push_back({kReceiverSlot, to_record(WeightsCommitted{engine.holds})});
    return;
  }
  dispatch_record<AllPaused>(tell.body, [&](const AllPaused& said) { paused_ = said.outcome; });
  dispatch_record<AllContinued>(tell.body, [&](const AllContinued& said) { continued_ = said.outcome; });
  dispatch_record<BatchReady>(tell.body, [&](const BatchReady&) { batch_ready_ = true; });
}

void RolloutWorld::on_start(Where from, const port::StartCompute& start) {
  if (start.what == port::ComputeKind::kReward) {
    const bool accepted = calm_ || rng_.draw_chance(3, 4);
    rewards_.push_back({start.op, start.what, Outcome::kOk, 0, accepted ? 1U : 0U, 0, {}});
    return;
  }
  Engine& engine = *engine_at(from.node);
  if (start.version != engine.holds) breaks("a decode began under another version than the engine holds");
  const std::uint64_t most = std::min<std::uint64_t>(start.amount, 1 + rng_.draw_below(kMaxTokens));
  engine.ops.push_back({start.op, most, 0});
}

void RolloutWorld::on_note(const Record& body) {
  dispatch_record<port::Admitted>(body, [&](const port::Admitted& note) {
    ++groups_admitted;
    const StalenessLimits limits{note.max_concurrent, note.batch_size, note.staleness};
    const StalenessCounters counters{0, note.running, note.accepted, 0};
    if (capacity(limits, counters, static_cast<std::int64_t>(note.version)) <= 0) breaks("admitted without capacity");
    if (pool_paused_) breaks("admitted while paused");
  });
  dispatch_record<port::Decoded>(body, [&](const port::Decoded& note) {
    if (note.tokens > 0 && note.digest != weights(note.version)) breaks("the engine's label is not the truth");
    ++made_[{note.sample.value, note.engine.value, note.version, note.tokens, note.digest.low}];
  });
  dispatch_record<port::SegmentStored>(body, [&](const port::SegmentStored& note) { on_stored(note); });
  dispatch_record<port::GroupFinished>(body, [&](const port::GroupFinished& note) {
    ++groups_finished;
    if (++finished_[note.group.value] > 1) breaks("a group finished twice");
  });
}

void RolloutWorld::on_stored(const port::SegmentStored& stored) {
  ++segments_stored;
  const Made key{stored.sample.value, stored.engine.value, stored.label, stored.tokens, stored.digest.low};
  if (--made_[key] < 0) breaks("stored what no engine made, or twice");
  if (stored.label < stored.pinned) breaks("served by older weights than were pinned");
  std::uint64_t& tokens = tokens_[stored.sample.value];
  tokens += stored.tokens;
  if (tokens > kMaxTokens) breaks("more tokens than the budget");
  const bool frozen = stored.end == port::SegmentEnd::kFrozen;
  const bool aborted = stored.end == port::SegmentEnd::kAborted;
  if (frozen || (aborted && tokens < kMaxTokens)) return;
  ++samples_ended;
  if (++ends_[stored.sample.value] > 1) breaks("a sample ended twice");
}

// ---- What happens next ----

void RolloutWorld::deliver(const Flight& flight) {
  const bool is_request = flight.message.kind == port::MessageKind::kRequest;
  const bool from_world = flight.to.node == kStore || flight.to.node.value / 10 == trainer_node(0).value / 10;
  if (is_request && from_world) {
    on_send(flight.to, {flight.message.from, flight.message.from_slot, port::MessageKind::kReply,
                        flight.message.request, to_record(Ack{})});
  } else {
    give(flight.to, flight.message);
  }
}

void RolloutWorld::some_message() {
  const auto pick = static_cast<std::ptrdiff_t>(rng_.draw_below(flights_.size()));
  const Flight flight = flights_[static_cast<std::size_t>(pick)];
  flights_.erase(flights_.begin() + pick);
  deliver(flight);
}

void RolloutWorld::some_timer() {
  const auto pick = static_cast<std::ptrdiff_t>(rng_.draw_below(timers_.size()));
  const auto [where, timer] = timers_[static_cast<std::size_t>(pick)];
  timers_.erase(timers_.begin() + pick);
  give(where, port::TimerFired{timer});
}

void RolloutWorld::finish_op(Engine& engine, std::size_t index, Outcome outcome, bool more) {
  DeviceOp& op = engine.ops[index];
  engine.done.push_back(
      {op.op, port::ComputeKind::kGenerate, outcome, 0, op.made, more ? 1U : 0U, weights(engine.holds)});
  op.made = 0;
  if (!more) engine.ops.erase(engine.ops.begin() + static_cast<std::ptrdiff_t>(index));
}

// One thing inside some node: tokens, a completion, a tell. False if there was nothing.
bool RolloutWorld::device_step() {
  const std::uint64_t first = rng_.draw_below(engines_.size());
  for (std::size_t offset = 0; offset < engines_.size(); ++offset) {
    const std::size_t index = (first + offset) % engines_.size();
    Engine& engine = engines_[index];
    const Where server{server_node(index), kServerSlot};
    const std::uint64_t order = rng_.draw_below(3);
    if (!engine.tells.empty() && order != 0) {
      const port::TellIn tell = engine.tells.front();
      engine.tells.erase(engine.tells.begin());
      return give(server, tell), true;
    }
    if (!engine.done.empty() && order != 1) {
      const port::ComputeDone done = engine.done.front();
      engine.done.erase(engine.done.begin());
      return give(server, done), true;
    }
    if (!engine.ops.empty() && !engine.frozen) {
      const std::size_t op = rng_.draw_below(engine.ops.size());
      const std::uint64_t tokens = std::min(engine.ops[op].left, rng_.draw_below(10));
      engine.ops[op].made += tokens;
      engine.ops[op].left -= tokens;
      if (engine.ops[op].left == 0) finish_op(engine, op, Outcome::kOk, false);
      return true;
    }
  }
  return false;
}

void RolloutWorld::restart(std::size_t index) {
  Engine& engine = engines_[index];
  const NodeId node = server_node(index);
  const Incarnation incarnation = engine.incarnation + 1;
  engine = Engine(make_server(index), incarnation);
  ++restarted;
  restarted_in_ = published_;
  std::erase_if(timers_, [&](const auto& armed) { return armed.first.node == node; });
  give({node, kServerSlot}, port::Started{incarnation, 0, 1});
  engine.tells.push_back({kReceiverSlot, to_record(WeightsCommitted{0})});
  // Guards are near: a replacement starts only when the router knows of the death.
  give({kRouter, kRouterSlot}, port::MessageIn{kGuard,
                                               1,
                                               kGuardSlot,
                                               port::MessageKind::kRequest,
                                               {++last_request_},
                                               to_record(WorkerStarted{node, incarnation, 0})});
}

// ---- The training loop ----

// Asks every engine to write until all hold the next version.
bool RolloutWorld::write_all() {
  bool all = true;
  for (Engine& engine : engines_) {
    all = all && engine.holds == published_ + 1 && engine.tells.empty();
    if (engine.write != Write::kNone || !engine.tells.empty()) continue;
    engine.write = Write::kAsked;
    engine.tells.push_back({kReceiverSlot, to_record(WantWrite{published_ + 1})});
  }
  return all;
}

void RolloutWorld::prove_members(Version version) {
  for (std::uint64_t engine = 0; engine < engines_.size(); ++engine) {
    // Only servers restart.
    const std::uint64_t incarnations = engines_[engine].incarnation + cluster_.engine_world - 1;
    give({kRouter, kRouterSlot}, port::MessageIn{kGateway,
                                                 1,
                                                 kGatewaySlot,
                                                 port::MessageKind::kRequest,
                                                 {++last_request_},
                                                 to_record(EngineMember{EngineId{engine}, version, incarnations})});
  }
}

void RolloutWorld::loop_step() {
  const auto tell = [&](SlotId slot, const auto& body) {
    controller_tells_.push_back({{kController, slot}, {kTrainLoopSlot, to_record(body)}});
  };
  switch (loop_) {
    case Loop::kCollect:
      if (!batch_ready_) return;
      batch_ready_ = false;
      tell(kPoolSlot, PausePool{});
      loop_ = options_.pauses_engines ? Loop::kPausing : Loop::kWriting;
      if (options_.pauses_engines) tell(kPauseGateSlot, PauseAll{});
      return;
    case Loop::kPausing:
      if (!paused_.has_value()) return;
      if (*paused_ == Outcome::kOk)
        loop_ = Loop::kWriting;
      else
        tell(kPauseGateSlot, PauseAll{});
      paused_.reset();
      return;
    case Loop::kWriting:
      if (!write_all()) return;
      loop_ = options_.pauses_engines ? Loop::kContinuing : Loop::kPublishing;
      if (options_.pauses_engines) tell(kPauseGateSlot, ContinueAll{});
      return;
    case Loop::kContinuing:
      if (!continued_.has_value()) return;
      if (*continued_ == Outcome::kOk)
        loop_ = Loop::kPublishing;
      else
        tell(kPauseGateSlot, ContinueAll{});
      continued_.reset();
      return;
    case Loop::kPublishing:
      ++published_;
      prove_members(published_);
      for (Engine& engine : engines_) engine.write = Write::kNone;
      flights_.push_back({{kRouter, kRouterSlot},
                          {kController,
                           1,
                           kTrainLoopSlot,
                           port::MessageKind::kRequest,
                           {++last_request_},
                           to_record(SetVersion{published_})},
                          true});
      tell(kPoolSlot, PoolVersion{published_});
      tell(kPoolSlot, ResumePool{});
      loop_ = published_ == options_.updates ? Loop::kEnded : Loop::kCollect;
      if (loop_ == Loop::kCollect) tell(kPoolSlot, WantBatch{TrainBatchId{published_ + 1}, published_});
      return;
    case Loop::kEnded:
      calm_ = true;
      return;
  }
}

bool RolloutWorld::quiet() const {
  return loop_ == Loop::kEnded && controller_tells_.empty() && pool_.samples().empty() && rewards_.empty() &&
         groups_admitted == groups_finished;
}

bool RolloutWorld::run(std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps && broken.empty(); ++step) {
    if (quiet()) {
      if (samples_ended != groups_admitted * options_.samples) breaks("a sample did not end");
      return true;
    }
    loop_step();
    // Only engines out of an update restart, and only one until it was part of the next.
    const bool may_restart = !calm_ && loop_ == Loop::kCollect && restarted_in_ != published_;
    const std::uint64_t dice = rng_.draw_below(1000);
    const std::uint64_t victim = rng_.draw_below(engines_.size());
    if (may_restart && engines_.size() > 1 && dice < options_.restarts) restart(victim);
    const std::uint64_t next = rng_.draw_below(100);
    if (next < 20 && !controller_tells_.empty()) {
      const auto [where, told] = controller_tells_.front();
      controller_tells_.erase(controller_tells_.begin());
      if (told.body.kind == PausePool::kKind) pool_paused_ = true;
      if (told.body.kind == ResumePool::kKind) pool_paused_ = false;
      give(where, told);
    } else if (next < 25 && !rewards_.empty()) {
      const port::ComputeDone reward = rewards_.front();
      rewards_.erase(rewards_.begin());
      give({kController, kPoolSlot}, reward);
    } else if (next < 60 && device_step()) {
      continue;
    } else if (next < 97 && !flights_.empty()) {
      some_message();
    } else if (!timers_.empty()) {
      some_timer();
    }
  }
  return false;
}

}  // namespace areal::test
