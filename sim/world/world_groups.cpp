// Collectives: rendezvous, meetings of control groups, pairs of payload groups, aborts and deaths.
#include <algorithm>

#include "engine/delta/schedule.h"
#include "engine/proto/member_groups.h"
#include "sim/world/transfer_time.h"
#include "sim/world/world.h"

namespace areal::sim {
namespace {

using What = WorldEvent::What;

constexpr Duration kRendezvousTime = 20_ms;
constexpr Duration kMeetingTime = 1_ms;
constexpr Duration kAbortTime = 5_ms;

bool is_payload(port::BatchKind kind) { return kind == port::BatchKind::kSend || kind == port::BatchKind::kReceive; }

}  // namespace

void World::join(NodeId node, SlotId slot, const port::JoinGroup& asked, const node::Origin& origin) {
  Group& group = groups_.find_or_make(asked.group, asked.backend, asked.world);
  if (group.aborted) {
    post_input(node, slot, port::GroupJoined{asked.group, port::Outcome::kAborted}, origin, kMeetingTime);
    return;
  }
  GroupMember member;
  member.node = node;
  member.incarnation = node_of(node).incarnation();
  member.slot = slot;
  member.rank = asked.rank;
  member.origin = origin;
  group.members.push_back(std::move(member));
  if (!group.is_bijection()) return;
  group.complete = true;
  group.met_at = now_ + kRendezvousTime;
  // The ranks of an engine meet again with everybody else: it can generate from here on.
  if (group.world == room_->cluster.world()) {
    for (EngineState& engine : engines_) engine.broken = false;
  }
  for (const GroupMember& one : group.members) {
    post_input(one.node, one.slot, port::GroupJoined{group.id, port::Outcome::kOk}, origin, kRendezvousTime);
  }
}

void World::post_batch(NodeId node, SlotId slot, const port::PostBatch& asked, const node::Origin& origin,
                       port::TraceSink& sink) {
  Group* group = groups_.find(asked.group);
  GroupMember* member = group != nullptr ? group->find(node) : nullptr;
  if (member == nullptr || !group->complete || group->aborted) {
    post_input(node, slot, port::BatchDone{asked.group, asked.batch, port::Outcome::kAborted, {}, 0, 0}, origin,
               kMeetingTime);
    return;
  }
  const std::size_t index = member->batches.size();
  GroupBatch batch;
  batch.kind = asked.kind;
  batch.batch = asked.batch;
  batch.tag = asked.tag;
  batch.round = asked.round;
  batch.part = asked.part;
  batch.bytes = asked.bytes;
  batch.version = asked.version;
  batch.buffer = asked.buffer;
  batch.dtype = asked.dtype;
  batch.value = asked.value;
  batch.count = asked.count;
  batch.origin = origin;
  member->batches.push_back(batch);
  if (is_payload(asked.kind) && asked.buffer.value != 0) {  // The liveness exchange moves no buffer.
    post_payload(*group, *member, index, sink);
  } else {
    post_control(*group, *member, index);
  }
}

// Barriers, sums and the liveness exchange: all members' n-th batches together.
void World::post_control(Group& group, GroupMember& member, std::size_t index) {
  const GroupBatch& batch = member.batches[index];
  if (group.backend == port::Backend::kGloo && group.known_dead() != nullptr) {
    end_batch(group, member, index, port::Outcome::kPeerGone, group.known_dead()->node, {}, kMeetingTime);
    return;
  }
  if (batch.kind == port::BatchKind::kBarrier && std::ranges::count(group.ended_tags, batch.tag) > 0) {
    end_batch(group, member, index, port::Outcome::kOk, {}, {}, kMeetingTime);
    return;
  }
  const Meeting meeting = meeting_of(group, index);
  if (!meeting.complete) return;
  const bool exchange = is_payload(batch.kind);  // Senders meet receivers: kinds differ by design.
  const bool fits = meeting.fits || exchange;
  // NCCL knows no tags: whoever does not fit waits for ever.
  if (!fits && group.backend == port::Backend::kNccl) return;
  if (batch.kind == port::BatchKind::kBarrier && fits) group.ended_tags.push_back(batch.tag);
  Duration lasts = kMeetingTime;
  if (batch.kind == port::BatchKind::kReduce) {
    reduce_window(group, index);
    lasts = lasts + reduce_time(group, index);
  }
  for (GroupMember& one : group.members) {
    if (one.batches[index].ended || one.dead) continue;
    end_batch(group, one, index, fits ? port::Outcome::kOk : port::Outcome::kMismatch, {}, meeting, lasts);
  }
}

// Corrections and statuses of one window meet: everybody ends with their sums.
void World::reduce_window(const Group& group, std::size_t index) {
  std::vector<node::TinyDelta*> members;
  const RoomNode& first = room_->node(group.members.front().node);
  const auto& places = room_->reconstruct->ranks[first.train_rank].places;
  for (const GroupMember& member : group.members) {
    members.push_back(&trainers_[room_->node(member.node).train_rank].trainer().delta());
  }
  if (!proto::is_side_group(group.id)) return;  // The norm of a training step has no window.
  for (std::uint8_t kind = 0; kind < proto::kReplicaKinds; ++kind) {
    const bool mine = group.id == proto::replica_group(proto::epoch_of_side(group.id), places[kind].group);
    if (mine) node::TinyDelta::reduce(members, group.members.front().batches[index].part, kind);
  }
}

// A ring: every rank sends and receives 2 (n - 1) / n of the bytes.
Duration World::reduce_time(const Group& group, std::size_t index) const {
  const std::uint64_t bytes = group.members.front().batches[index].bytes;
  const std::uint64_t world = group.world;
  return time_of_bytes(bytes * 2 * (world - 1) / world, room_->scenario.links.bandwidth);
}

void World::end_batch(const Group& group, GroupMember& member, std::size_t index, port::Outcome outcome, NodeId peer,
                      const Meeting& meeting, Duration after) {
  GroupBatch& batch = member.batches[index];
  batch.ended = true;
  post_input(member.node, member.slot,
             port::BatchDone{group.id, batch.batch, outcome, peer, meeting.value, meeting.count}, batch.origin, after);
}

// Elements of one pair that a batch moves: those of the plan, or in a delta those that changed, in the proportion in
// which the live ones did.
std::uint64_t World::pair_elements(const GroupMember& sender, const proto::PeerList& list,
                                   const GroupBatch& batch) const {
  const DType wire = room_->members->at(sender.rank).passes[batch.part].wire;
  const proto::DTypeTotal& total = list.by_dtype[static_cast<std::size_t>(wire)];
  if (batch.round == port::Round::kDense || total.elements == 0) return total.elements;
  if (batch.round == port::Round::kCounts) return total.ops;
  const node::PackedStream* stream = stream_of(list.send, list.recv);
  const auto dtype = static_cast<std::size_t>(wire);
  if (stream == nullptr || stream->updates.by_dtype[dtype] == 0) return 0;
  const proto::TransferPlan& live = *room_->tiny->plan;
  const auto number = static_cast<std::size_t>(live.find(list.send, list.recv) - live.lists.data());
  const std::uint64_t of = room_->tiny->streams[number].weight[dtype];
  const std::uint64_t changed = stream->updates.weight[dtype];
  return std::max<std::uint64_t>(1, total.elements / of * changed + total.elements % of * changed / of);
}

const node::PackedStream* World::stream_of(std::uint32_t sender, std::uint32_t receiver) const {
  const node::Packed& packed = trainers_[sender - room_->cluster.infer_world()].packed();
  const auto stream = std::ranges::find(packed.streams, receiver, &node::PackedStream::receiver);
  return stream != packed.streams.end() ? &*stream : nullptr;
}

// Payload: every pair of the plan that has something of this batch moves once both sides have posted.
void World::post_payload(Group& group, GroupMember& member, std::size_t index, port::TraceSink& sink) {
  const bool sends = member.batches[index].kind == port::BatchKind::kSend;
  const proto::RankPlan plan = room_->plan->rank(member.rank);
  const bool has_part = member.batches[index].part < room_->members->at(member.rank).passes.size();
  std::vector<std::size_t> pairs;
  for (std::size_t i = 0; has_part && i < plan.peer_count(); ++i) {
    if (pair_elements(member, plan.list(i), member.batches[index]) > 0) pairs.push_back(i);
  }
  member.batches[index].pairs_left = static_cast<std::uint32_t>(pairs.size());
  if (pairs.empty()) {
    end_payload(group, member, index, kMeetingTime);
    return;
  }
  // A delta meets its peers in the order of the recursive schedule.
  if (member.batches[index].round != port::Round::kDense) {
    std::ranges::stable_sort(pairs, {}, [&](std::size_t i) {
      return delta::schedule_slot(group.world, plan.list(i).send, plan.list(i).recv);
    });
  }
  for (const std::size_t i : pairs) {
    GroupMember* peer = group.find_rank(plan.peer(i));
    if (peer == nullptr || peer->dead || peer->batches.size() <= index) continue;
    const port::BatchKind wanted = sends ? port::BatchKind::kReceive : port::BatchKind::kSend;
    if (peer->batches[index].kind != wanted || peer->batches[index].ended) continue;
    start_pair(group, sends ? member : *peer, sends ? *peer : member, index, sink);
  }
}

void World::start_pair(Group& group, GroupMember& sender, GroupMember& receiver, std::size_t index,
                       port::TraceSink& sink) {
  const GroupBatch& sent = sender.batches[index];
  const GroupBatch& wanted = receiver.batches[index];
  // Two sides that disagree about what they do or about the size of an element wait for each other for ever, as real
  // ones do.
  if (size_of(sent.dtype) != size_of(wanted.dtype) || sent.round != wanted.round || sent.part != wanted.part) return;
  const proto::PeerList* list = room_->plan->find(sender.rank, receiver.rank);
  if (list == nullptr) return;  // Both sides changed what they do; nothing is planned this way round.
  constexpr std::uint32_t kIndexBytes = 4;
  std::uint64_t size = size_of(sent.dtype);
  if (sent.round == port::Round::kCounts) size = kIndexBytes;
  if (sent.round == port::Round::kData) size += kIndexBytes;
  const std::uint64_t bytes = pair_elements(sender, *list, sent) * size;
  const std::uint64_t factor = pair_factor(sender.node, receiver.node, sink);
  const Instant begins = std::max({now_, link_free_[sender.rank], link_free_[receiver.rank]});
  const Instant ends = begins + time_of_bytes(bytes * factor, room_->scenario.links.bandwidth);
  link_free_[sender.rank] = link_free_[receiver.rank] = ends;
  if (sent.round != port::Round::kCounts) replicas_[receiver.rank].count_landed(bytes);
  queue_.post(ends, WorldEvent{.what = What::kPairMoved,
                               .number = group.id.value,
                               .a = sender.rank,
                               .b = receiver.rank,
                               .c = index,
                               .erased = {}});
}

// The bytes really move now: from what the sender packed to the receiver's staging memory. A pair lands with the last
// batch that has something of it; one that has nothing to say in a delta, with its counts.
void World::pair_moved(const WorldEvent& event, port::TraceSink& sink) {
  Group* group = groups_.find(GroupId{event.number});
  if (group == nullptr || group->aborted) return;
  GroupMember* sender = group->find_rank(static_cast<std::uint32_t>(event.a));
  GroupMember* receiver = group->find_rank(static_cast<std::uint32_t>(event.b));
  if (sender == nullptr || receiver == nullptr || sender->dead || receiver->dead) return;
  const std::size_t index = event.c;
  land(*sender, *receiver, sender->batches[index], sink);
  for (GroupMember* side : {sender, receiver}) {
    if (--side->batches[index].pairs_left == 0) end_payload(*group, *side, index, {});
  }
}

// Counts say what data follows at this rank.
void World::end_payload(const Group& group, GroupMember& side, std::size_t index, Duration after) {
  Meeting meeting;
  const GroupBatch& batch = side.batches[index];
  if (batch.round == port::Round::kCounts && batch.part < room_->members->at(side.rank).passes.size()) {
    const proto::RankPlan plan = room_->plan->rank(side.rank);
    const auto wire = static_cast<std::size_t>(room_->members->at(side.rank).passes[batch.part].wire);
    for (std::size_t i = 0; i < plan.peer_count(); ++i) {
      const node::PackedStream* stream = stream_of(plan.list(i).send, plan.list(i).recv);
      const std::uint64_t updates = stream != nullptr ? stream->updates.by_dtype[wire] : 0;
      meeting.value += updates;
      meeting.count += updates > 0 ? 1 : 0;
    }
  }
  end_batch(group, side, index, port::Outcome::kOk, {}, meeting, after);
}

void World::land(const GroupMember& sender, const GroupMember& receiver, const GroupBatch& batch,
                 port::TraceSink& sink) {
  const proto::PeerList* list = room_->plan->find(sender.rank, receiver.rank);
  const std::vector<proto::MemberPass>& passes = room_->members->at(sender.rank).passes;
  GroupBatch later = batch;
  if (batch.round == port::Round::kCounts) {
    later.round = port::Round::kData;
    if (pair_elements(sender, *list, later) > 0) return;  // The data of this pass.
    later.round = batch.round;
  }
  for (later.part = batch.part + 1; later.part < passes.size(); ++later.part) {
    if (pair_elements(sender, *list, later) > 0) return;  // The rest is still to come.
  }
  const node::PackedStream* stream = stream_of(sender.rank, receiver.rank);
  if (stream == nullptr) return;  // Nothing of this pair is live.
  node::TinyReplica& replica = replicas_[receiver.rank].replica();
  if (batch.round == port::Round::kDense) {
    AREAL_CHECK(replica.land(sender.rank, stream->bits));
  } else {
    AREAL_CHECK(replica.land(sender.rank, stream->updates));
  }
  if (batch.round == port::Round::kCounts) return;
  if (faults_.take_flip(receiver.node, {now_, decisions_, sink})) replica.flip(seq_);
}

void World::abort_group(NodeId node, SlotId slot, GroupId id, const node::Origin& origin) {
  Group* group = groups_.find(id);
  // A member that is about to learn that the group met learns it before the abort is over.
  Duration lasts = kAbortTime;
  if (group != nullptr) lasts = std::max(lasts, group->met_at - now_);
  if (group != nullptr && !group->aborted) {
    group->aborted = true;
    for (GroupMember& member : group->members) {
      if (member.dead || member.left) continue;
      if (!group->complete) {
        post_input(member.node, member.slot, port::GroupJoined{id, port::Outcome::kAborted}, origin, kMeetingTime);
      }
      for (std::size_t i = 0; i < member.batches.size(); ++i) {
        if (!member.batches[i].ended) end_batch(*group, member, i, port::Outcome::kAborted, {}, {}, kMeetingTime);
      }
    }
  }
  post_input(node, slot, port::GroupAborted{id}, origin, lasts);
}

void World::leave_group(NodeId node, GroupId id) {
  Group* group = groups_.find(id);
  GroupMember* member = group != nullptr ? group->find(node) : nullptr;
  if (member == nullptr) return;
  member->left = true;
  const bool empty = std::ranges::all_of(group->members, [](const GroupMember& one) { return one.left || one.dead; });
  if (empty) groups_.erase(id);
}

void World::member_died(NodeId node) {
  for (Group& group : groups_.all()) {
    GroupMember* member = group.find(node);
    if (member == nullptr || member->left || member->dead) continue;
    member->dead = true;
    if (group.aborted || group.backend != port::Backend::kGloo) continue;
    post(room_->scenario.links.reset_after,
         WorldEvent{.what = What::kDeathNoticed, .node = node, .number = group.id.value, .erased = {}});
  }
}

void World::death_noticed(const WorldEvent& event) {
  Group* group = groups_.find(GroupId{event.number});
  if (group == nullptr || group->aborted) return;
  if (GroupMember* dead = group->find(event.node); dead != nullptr) dead->noticed = true;
  for (GroupMember& member : group->members) {
    if (member.dead || member.left) continue;
    for (std::size_t i = 0; i < member.batches.size(); ++i) {
      if (!member.batches[i].ended) end_batch(*group, member, i, port::Outcome::kPeerGone, event.node, {}, {});
    }
  }
}

void World::list_group_waits(std::vector<RoomWait>& waits) const {
  for (const Group& group : groups_.all()) {
    if (group.aborted) continue;
    for (const GroupMember& member : group.members) {
      if (member.dead || member.left || member.batches.empty() || member.batches.back().ended) continue;
      const std::size_t index = member.batches.size() - 1;
      for (const GroupMember& other : group.members) {
        if (&other == &member || (!other.dead && other.batches.size() > index)) continue;
        waits.push_back({member.node, other.node,
                         "batch " + std::to_string(index + 1) + " of group " + std::to_string(group.id.value) +
                             (other.dead ? " (dead)" : " (not posted)")});
      }
    }
  }
}

}  // namespace areal::sim
