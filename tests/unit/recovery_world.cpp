#include "tests/unit/recovery_world.h"

namespace areal::test {

using proto::Outcome;

void RecoveryWorld::start_rank(std::uint32_t rank) {
  Rank& process = ranks_[rank];
  ++process.incarnation;
  process.alive = true;
  proto::TrainRankOptions options;
  options.rank = rank;
  process.protocol.emplace(options, cluster());
  process.version = 0;
  process.bytes = {1, 1};
  const NodeId node{10 + rank};
  send(node, proto::kTrainRankSlot, port::Started{process.incarnation, 0, 1});
  const proto::WorkerStarted news{node, process.incarnation, 0};
  send(kLoop, kLoopSlot,
       port::MessageIn{
           {5}, 1, proto::kGuardSlot, port::MessageKind::kRequest, RequestId{++guard_requests_}, to_record(news)});
}

void RecoveryWorld::kill(std::uint32_t rank, bool at_once) {
  Rank& process = ranks_[rank];
  if (!process.alive) return;
  process.alive = false;
  const NodeId node{10 + rank};
  std::erase_if(timers_, [&](const Timer& timer) { return timer.node == node; });
  untold_.push_back(node);
  const proto::WorkerExited news{node, process.incarnation};
  const port::MessageIn said{
      {5}, 1, proto::kGuardSlot, port::MessageKind::kRequest, RequestId{++guard_requests_}, to_record(news)};
  queue_.insert(at_once ? queue_.begin() : queue_.end(), Event{kLoop, 0, kLoopSlot, said, {}});
}

bool RecoveryWorld::step() {
  if (queue_.empty()) {
    const auto first = std::ranges::min_element(timers_, {}, &Timer::due);
    if (first == timers_.end()) return false;
    const Timer timer = *first;
    timers_.erase(first);
    now_ = timer.due;
    const SlotId slot = is_rank(timer.node) ? proto::kTrainRankSlot : kLoopSlot;
    queue_.push_back({timer.node, timer.incarnation, slot, port::TimerFired{timer.id}, {}});
  }
  Event event = queue_.front();
  queue_.pop_front();
  proto::Outbox out;
  if (!is_rank(event.to)) {
    loop_.step(event.input, out);
    carry_out(event.to, out);
    return true;
  }
  Rank& process = rank_of(event.to);
  if (!process.alive || process.incarnation != event.incarnation) return true;
  if (event.compute) event.input = compute(static_cast<std::uint32_t>(event.to.value - 10), *event.compute);
  process.protocol->step(event.input, out);
  carry_out(event.to, out);
  return true;
}

void RecoveryWorld::carry_out(NodeId from, const proto::Outbox& out) {
  const auto rank = static_cast<std::uint32_t>(from.value - 10);
  for (const proto::Effect& effect : out.effects()) {
    if (const auto* sent = std::get_if<port::Send>(&effect)) message(from, *sent);
    if (const auto* tell = std::get_if<port::Tell>(&effect); tell != nullptr && from == kLoop) told(*tell);
    if (const auto* armed = std::get_if<port::ArmTimer>(&effect)) {
      std::erase_if(timers_, [&](const Timer& timer) { return timer.node == from && timer.id == armed->timer; });
      timers_.push_back({from, is_rank(from) ? rank_of(from).incarnation : 0, armed->timer, now_ + armed->after});
    }
    if (const auto* disarmed = std::get_if<port::DisarmTimer>(&effect)) {
      std::erase_if(timers_, [&](const Timer& timer) { return timer.node == from && timer.id == disarmed->timer; });
    }
    if (const auto* asked = std::get_if<port::StartCompute>(&effect)) {
      queue_.push_back({from, rank_of(from).incarnation, proto::kTrainRankSlot, port::Started{}, *asked});
    }
    if (const auto* joined = std::get_if<port::JoinGroup>(&effect)) join(rank, *joined);
    if (const auto* posted = std::get_if<port::PostBatch>(&effect)) post(rank, *posted);
    if (const auto* aborted = std::get_if<port::AbortGroup>(&effect)) abort(rank, aborted->group);
    if (const auto* stored = std::get_if<port::StorePut>(&effect)) put(*stored);
    if (const auto* asked = std::get_if<port::StoreGet>(&effect)) get(*asked);
    if (const auto* note = std::get_if<port::Note>(&effect)) {
      const auto keep = [&](auto& list) { return [&](const auto& body) { list.push_back(body); }; };
      dispatch_record<port::TrainingWorldChanged>(note->body, keep(worlds));
      dispatch_record<port::CheckpointInfo>(note->body, keep(infos));
      dispatch_record<port::StepTrained>(note->body, keep(steps));
      dispatch_record<port::PhaseEntered>(note->body,
                                          [&](const port::PhaseEntered& said) { phases.push_back(said.phase); });
      dispatch_record<port::RunEnded>(note->body, [&](const port::RunEnded& said) { ended = said; });
    }
  }
}

void RecoveryWorld::message(NodeId from, const port::Send& sent) {
  if (sent.to == NodeId{5} && sent.kind == port::MessageKind::kReply) {  // The loop knows: a new process may start.
    for (const NodeId dead : std::exchange(untold_, {})) start_rank(static_cast<std::uint32_t>(dead.value - 10));
    return;
  }
  if (from != kLoop || is_rank(sent.to)) {
    const Incarnation incarnation = is_rank(from) ? rank_of(from).incarnation : 1;
    const SlotId slot = is_rank(from) ? proto::kTrainRankSlot : kLoopSlot;
    send(sent.to, sent.to_slot, port::MessageIn{from, incarnation, slot, sent.kind, sent.request, sent.body});
    return;
  }
  dispatch_record<proto::ConnectRequest>(
      sent.body, [&](const proto::ConnectRequest&) { reply(sent, proto::ConnectReply{Outcome::kOk, 1}); });
  dispatch_record<proto::DisconnectRequest>(sent.body,
                                            [&](const proto::DisconnectRequest&) { reply(sent, proto::Ack{}); });
  dispatch_record<proto::UpdateRequest>(sent.body,
                                        [&](const proto::UpdateRequest& asked) { reply(sent, update(asked)); });
  dispatch_record<proto::SetVersion>(sent.body, [&](const proto::SetVersion& set) {
    const std::size_t place = sent.to == NodeId{4} ? 2 : sent.to.value - 20;
    EXPECT_GE(set.training_epoch, announced_[place].training_epoch);
    if (set.training_epoch == announced_[place].training_epoch) {
      EXPECT_GE(set.version, announced_[place].version);
    }
    announced_[place] = {set.training_epoch, set.version, {}};
    set_version(set);
    reply(sent, proto::Ack{});
  });
  dispatch_record<proto::ReservePort>(sent.body, [&](const proto::ReservePort& asked) {
    const auto known = std::ranges::find(ports_, asked.epoch, &proto::WorldPort::training_epoch);
    if (known == ports_.end()) ports_.push_back({asked.epoch, static_cast<std::uint16_t>(900 + asked.epoch)});
    reply(sent, proto::PortReserved{asked.epoch, Outcome::kOk, static_cast<std::uint16_t>(900 + asked.epoch)});
  });
  dispatch_record<proto::ReturnPort>(sent.body, [&](const proto::ReturnPort& back) {
    std::erase_if(ports_, [&](const proto::WorldPort& kept) {
      return kept.training_epoch == back.epoch && kept.port == back.port;
    });
    reply(sent, proto::Ack{});
  });
}

// An update moves what all ranks hold to engines that are paused, or says that a rank is gone.
proto::UpdateReply RecoveryWorld::update(const proto::UpdateRequest& asked) {
  proto::UpdateReply said{asked.version, Outcome::kOk, 1, proto::UpdateMode::kFull, proto::FullReason::kNone, 0};
  EXPECT_TRUE(gate_paused_);
  EXPECT_TRUE(pool_paused_);
  for (const Rank& rank : ranks_) {
    if (!rank.alive) said.outcome = Outcome::kPeerGone;
    if (rank.alive && rank.version != asked.version) said.outcome = Outcome::kPeerGone;  // Started again, not restored.
  }
  if (said.outcome != Outcome::kOk) return said;
  for (const Rank& rank : ranks_) EXPECT_EQ(rank.bytes, ranks_[0].bytes);
  const Published now{asked.training_epoch, asked.version, ranks_[0].bytes};
  const Published last = published.empty() ? Published{} : published.back();
  const bool follows = now.version == last.version + 1 || now == last;
  EXPECT_TRUE(now.training_epoch > last.training_epoch || (now.training_epoch == last.training_epoch && follows));
  published.push_back(now);
  return said;
}

// Nothing is announced that the engines do not hold.
void RecoveryWorld::set_version(const proto::SetVersion& set) {
  if (set.version == 0 && published.empty()) return;
  ASSERT_FALSE(published.empty());
  EXPECT_EQ(set.version, published.back().version);
}

void RecoveryWorld::told(const port::Tell& tell) {
  const Record& body = tell.body;
  dispatch_record<proto::PausePool>(body, [&](const proto::PausePool&) { pool_paused_ = true; });
  dispatch_record<proto::ResumePool>(body, [&](const proto::ResumePool&) {
    EXPECT_FALSE(gate_paused_);
    if (!published.empty()) {  // What engines hold is what tokens are counted as.
      EXPECT_EQ(published.back().version, pool_version_);
      EXPECT_EQ(announced_[2].version, pool_version_) << "the router knows no engine of another version";
    }
    pool_paused_ = false;
  });
  dispatch_record<proto::PoolVersion>(body, [&](const proto::PoolVersion& said) {
    EXPECT_GE(said.version, pool_version_);
    pool_version_ = said.version;
  });
  dispatch_record<proto::ResetPool>(body, [&](const proto::ResetPool& reset) {
    EXPECT_TRUE(pool_paused_);
    EXPECT_GT(reset.batch, last_batch_);
    pool_version_ = reset.version;
    resets.push_back(reset);
    answer_tell(proto::kPoolSlot, proto::PoolReset{reset.version});
  });
  dispatch_record<proto::WantBatch>(body, [&](const proto::WantBatch& want) {
    EXPECT_GE(want.batch, last_batch_);
    last_batch_ = want.batch;
    answer_tell(proto::kPoolSlot, proto::BatchReady{want.batch, 0, want.batch.value});
  });
  dispatch_record<proto::PauseAll>(body, [&](const proto::PauseAll&) {
    gate_paused_ = true;
    answer_tell(proto::kPauseGateSlot, proto::AllPaused{});
  });
  dispatch_record<proto::ContinueAll>(body, [&](const proto::ContinueAll&) {
    gate_paused_ = false;
    answer_tell(proto::kPauseGateSlot, proto::AllContinued{});
  });
  dispatch_record<proto::ClearBatch>(body, [&](const proto::ClearBatch& clear) {
    answer_tell(proto::kDrainSlot, proto::BatchCleared{clear.batch, Outcome::kOk});
  });
}

// ---- Devices and groups ----

// The second rank's gradients for version 2 are not finite.
port::ComputeDone RecoveryWorld::compute(std::uint32_t rank, const port::StartCompute& asked) {
  Rank& device = ranks_[rank];
  port::ComputeDone done{asked.op, asked.what, Outcome::kOk, asked.version, 0, 0, {}};
  if (asked.what == port::ComputeKind::kLoadModel) {
    device.version = 0;
    device.bytes = {1, 1};
  } else if (asked.what == port::ComputeKind::kGradients) {
    done.count = rank == 1 && asked.version == 2 ? 1 : 0;
  } else if (asked.what == port::ComputeKind::kTrainStep) {
    EXPECT_EQ(device.version + 1, asked.version);
    device.version = asked.version;
    if (asked.amount > 0) device.bytes = chain_digest(device.bytes, {asked.version, asked.seed});
    done.count = asked.amount;
  } else if (asked.what == port::ComputeKind::kSaveCheckpoint) {
    EXPECT_EQ(device.version, asked.version);
    device.saved[asked.amount] = {device.version, device.bytes};
  } else if (asked.what == port::ComputeKind::kLoadCheckpoint) {
    const Saved& saved = device.saved[asked.amount];
    if (saved.version != asked.version) {
      done.outcome = Outcome::kFailed;
      return done;
    }
    device.version = saved.version;
    device.bytes = saved.bytes;
  }
  done.digest = device.bytes;
  return done;
}

RecoveryWorld::Group& RecoveryWorld::group(GroupId id) {
  const auto place = std::ranges::find(groups_, id, &Group::id);
  if (place != groups_.end()) return *place;
  groups_.push_back({id, false, {}, {}, {}});
  return groups_.back();
}

void RecoveryWorld::join(std::uint32_t rank, const port::JoinGroup& asked) {
  Group& joined = group(asked.group);
  if (joined.aborted) {
    send({10 + rank}, proto::kTrainRankSlot, port::GroupJoined{asked.group, Outcome::kAborted});
    return;
  }
  EXPECT_EQ(std::ranges::count(joined.members, rank), 0);
  joined.members.push_back(rank);
  if (joined.members.size() < kRanks) return;
  for (const std::uint32_t member : joined.members) {
    if (!ranks_[member].alive) return;
  }
  for (const std::uint32_t member : joined.members) {
    send({10 + member}, proto::kTrainRankSlot, port::GroupJoined{asked.group, Outcome::kOk});
  }
}

void RecoveryWorld::post(std::uint32_t rank, const port::PostBatch& posted) {
  Group& meeting = group(posted.group);
  if (meeting.aborted) {
    const port::BatchDone done{posted.group, posted.batch, Outcome::kAborted, {}, 0, 0};
    send({10 + rank}, proto::kTrainRankSlot, done);
    return;
  }
  meeting.batches.push_back(posted);
  meeting.posters.push_back(rank);
  if (meeting.batches.size() < kRanks) return;
  std::uint64_t value = 0;
  std::uint64_t count = 0;
  for (const port::PostBatch& batch : meeting.batches) {
    EXPECT_EQ(batch.tag, posted.tag);
    value += batch.value;
    count += batch.count;
  }
  for (std::size_t i = 0; i < kRanks; ++i) {
    send({10 + meeting.posters[i]}, proto::kTrainRankSlot,
         port::BatchDone{posted.group, meeting.batches[i].batch, Outcome::kOk, {}, value, count});
  }
  meeting.batches.clear();
  meeting.posters.clear();
}

void RecoveryWorld::abort(std::uint32_t rank, GroupId id) {
  Group& ended_group = group(id);
  if (!std::exchange(ended_group.aborted, true)) {
    for (std::size_t i = 0; i < ended_group.posters.size(); ++i) {
      send({10 + ended_group.posters[i]}, proto::kTrainRankSlot,
           port::BatchDone{id, ended_group.batches[i].batch, Outcome::kAborted, {}, 0, 0});
    }
    for (const std::uint32_t member : ended_group.members) {
      if (ended_group.members.size() == kRanks) break;
      send({10 + member}, proto::kTrainRankSlot, port::GroupJoined{id, Outcome::kAborted});
    }
  }
  send({10 + rank}, proto::kTrainRankSlot, port::GroupAborted{id});
}

// ---- Store ----

void RecoveryWorld::put(const port::StorePut& put) {
  auto place = std::ranges::find(store_, put.key, &std::pair<std::uint64_t, Digest128>::first);
  if (place == store_.end()) place = store_.insert(store_.end(), {put.key, Digest128{}});
  const bool fits = place->second == put.expected;
  if (fits) place->second = put.value;
  send(kLoop, kLoopSlot, port::StoreDone{put.op, fits ? Outcome::kOk : Outcome::kMismatch, place->second});
}

void RecoveryWorld::get(const port::StoreGet& get) {
  const auto place = std::ranges::find(store_, get.key, &std::pair<std::uint64_t, Digest128>::first);
  const bool found = place != store_.end();
  send(kLoop, kLoopSlot,
       port::StoreDone{get.op, found ? Outcome::kOk : Outcome::kRefused, found ? place->second : Digest128{}});
}

}  // namespace areal::test
