#include "sim/world/sim_group.h"

#include <algorithm>

namespace areal::sim {

GroupMember* Group::find(NodeId node) {
  const auto place = std::ranges::find(members, node, &GroupMember::node);
  return place != members.end() ? &*place : nullptr;
}

GroupMember* Group::find_rank(std::uint32_t rank) {
  const auto place = std::ranges::find(members, rank, &GroupMember::rank);
  return place != members.end() ? &*place : nullptr;
}

bool Group::is_bijection() const {
  if (members.size() != world) return false;
  std::vector<bool> claimed(world);
  for (const GroupMember& member : members) {
    if (member.dead || member.rank >= world || claimed[member.rank]) return false;
    claimed[member.rank] = true;
  }
  return true;
}

const GroupMember* Group::known_dead() const {
  const auto place = std::ranges::find_if(members, [](const GroupMember& member) { return member.noticed; });
  return place != members.end() ? &*place : nullptr;
}

Meeting meeting_of(const Group& group, std::size_t index) {
  Meeting meeting;
  const GroupBatch* first = nullptr;
  for (const GroupMember& member : group.members) {
    if (member.batches.size() <= index) return meeting;
    const GroupBatch& batch = member.batches[index];
    if (first == nullptr) {
      first = &batch;
      meeting.value = batch.value;
      meeting.count = batch.count;
      continue;
    }
    meeting.fits = meeting.fits && batch.kind == first->kind && batch.tag == first->tag;
    switch (batch.kind) {
      case port::BatchKind::kSum:
      case port::BatchKind::kReduce:
        meeting.value += batch.value;
        meeting.count += batch.count;
        break;
      case port::BatchKind::kMin:
        meeting.value = std::min(meeting.value, batch.value);
        meeting.count = std::min(meeting.count, batch.count);
        break;
      case port::BatchKind::kMax:
        meeting.value = std::max(meeting.value, batch.value);
        meeting.count = std::max(meeting.count, batch.count);
        break;
      case port::BatchKind::kBarrier:
      case port::BatchKind::kSend:
      case port::BatchKind::kReceive:
        break;
    }
  }
  meeting.complete = first != nullptr;
  return meeting;
}

Group& SimGroups::find_or_make(GroupId id, port::Backend backend, std::uint32_t world) {
  if (Group* group = find(id); group != nullptr) return *group;
  Group& group = groups_.emplace_back();
  group.id = id;
  group.backend = backend;
  group.world = world;
  return group;
}

Group* SimGroups::find(GroupId id) {
  const auto place = std::ranges::find(groups_, id, &Group::id);
  return place != groups_.end() ? &*place : nullptr;
}

void SimGroups::erase(GroupId id) {
  std::erase_if(groups_, [&](const Group& group) { return group.id == id; });
}

}  // namespace areal::sim
