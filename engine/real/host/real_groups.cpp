// The groups half of a real process's ports: wishes go to the backend, news come back as inputs.
#include <algorithm>
#include <utility>

#include "engine/proto/member_groups.h"
#include "engine/proto/training_group.h"
#include "engine/real/host/real_ports.h"

namespace areal::host {
namespace {

bool is_transfer(port::BatchKind kind) { return kind == port::BatchKind::kSend || kind == port::BatchKind::kReceive; }

}  // namespace

void RealPorts::join(SlotId slot, const port::JoinGroup& effect) {
  joins_.push_back({effect.group, {slot, origin_, {}}});
  places_.push_back({effect.group, {effect.rank, effect.world}});
  groups_->join(effect.group, effect.rank, effect.world);
}

// Batches that carry weights or sums of them; the others are words alone.
bool RealPorts::moves_weights(const port::PostBatch& batch) const {
  if (batch.kind == port::BatchKind::kReduce) return proto::is_side_group(batch.group);
  return is_transfer(batch.kind) && batch.buffer.value != 0;
}

node::BatchPayload RealPorts::payload_of(const port::PostBatch& batch) {
  if (is_transfer(batch.kind) && batch.buffer.value == 0) {  // The liveness exchange.
    const auto place = std::ranges::find(places_, batch.group, &decltype(places_)::value_type::first);
    if (place == places_.end()) return {};
    return node::liveness_payload(place->second.first, place->second.second);
  }
  if (!moves_weights(batch)) return {};
  if (compute_.train_rank() != nullptr) return sender_.make(*parts_.room, *compute_.train_rank(), batch);
  if (compute_.engine_rank() != nullptr) return receiver_.make(*parts_.room, *compute_.engine_rank(), batch);
  return {};
}

node::PayloadEnd RealPorts::take_payload(const port::PostBatch& batch, const node::BatchPayload& payload) {
  if (!moves_weights(batch)) return {};
  if (compute_.train_rank() != nullptr) return sender_.take(*parts_.room, *compute_.train_rank(), batch, payload);
  if (compute_.engine_rank() == nullptr) return {};
  const node::PayloadEnd end = receiver_.take(*parts_.room, *compute_.engine_rank(), batch, payload);
  if (parts_.faults != nullptr && parts_.faults->flips()) compute_.engine_rank()->replica().flip(batch.tag);
  return end;
}

void RealPorts::post(SlotId slot, const port::PostBatch& effect) {
  batches_.push_back({slot, origin_, effect});
  groups_->post(effect, payload_of(effect));
}

void RealPorts::abort(SlotId slot, const port::AbortGroup& effect) {
  aborts_.push_back({effect.group, {slot, origin_, {}}});
  groups_->abort(effect.group);
}

void RealPorts::leave(SlotId /*slot*/, const port::LeaveGroup& effect) {
  std::erase_if(places_, [&](const auto& place) { return place.first == effect.group; });
  groups_->leave(effect.group);
}

NodeId RealPorts::member_of(GroupId group, std::uint32_t rank) const {
  const proto::ClusterMap& cluster = parts_.room->cluster;
  const bool of_trainers = group.value >> 32 != 0;
  if (!of_trainers) return rank < cluster.world() ? cluster.node_of_transfer_rank(rank) : NodeId{};
  // Ranks of a replica group are not ranks of training; whoever is to blame there shows in the other groups.
  const bool all = proto::is_training_group(group) || (group.value & 0xFFFF) == 0;
  return all && rank < cluster.train_world() ? cluster.trainers[rank] : NodeId{};
}

void RealPorts::take_news(GroupNews news) {
  const auto of_group = [&](const std::pair<GroupId, Wish>& one) { return one.first == news.group; };
  if (news.what == GroupNews::What::kDone) {
    batch_done(news);
    return;
  }
  const bool joined = news.what == GroupNews::What::kJoined;
  auto& wishes = joined ? joins_ : aborts_;
  const auto place = std::ranges::find_if(wishes, of_group);
  if (place == wishes.end()) return;
  const Wish wish = place->second;
  wishes.erase(place);
  if (joined) {
    deliver(wish.slot, port::GroupJoined{news.group, news.outcome}, wish.origin);
  } else {
    std::erase_if(places_, [&](const auto& one) { return one.first == news.group; });
    deliver(wish.slot, port::GroupAborted{news.group}, wish.origin);
  }
}

void RealPorts::batch_done(const GroupNews& news) {
  const auto place = std::ranges::find_if(
      batches_, [&](const Wish& wish) { return wish.batch.group == news.group && wish.batch.batch == news.batch; });
  if (place == batches_.end()) return;
  const Wish wish = *place;
  batches_.erase(place);
  port::BatchDone done{news.group, news.batch, news.outcome, {}, news.value, news.count};
  if (news.peer_rank) done.peer = member_of(news.group, *news.peer_rank);
  const bool words = !is_transfer(wish.batch.kind) && wish.batch.kind != port::BatchKind::kBarrier;
  if (!words) done.value = done.count = 0;
  if (news.outcome == port::Outcome::kOk) {
    const node::PayloadEnd end = take_payload(wish.batch, news.payload);
    if (!end.fits) done.outcome = port::Outcome::kMismatch;
    if (is_transfer(wish.batch.kind)) done.value = end.value, done.count = end.count;
  }
  deliver(wish.slot, done, wish.origin);
}

}  // namespace areal::host
