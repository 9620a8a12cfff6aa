#include "replay/analyse/meetings.h"

#include <algorithm>

namespace areal::analyse {

namespace {

bool is_effect(const port::TraceEvent& event) { return event.what == port::TraceWhat::kEffect; }

bool meets(port::BatchKind kind) { return kind != port::BatchKind::kSend && kind != port::BatchKind::kReceive; }

}  // namespace

const Meetings::Group* Meetings::find(GroupId id) const {
  const auto place = std::ranges::lower_bound(groups_, id, {}, &Group::id);
  return place != groups_.end() && place->id == id ? &*place : nullptr;
}

Meetings::Member* Meetings::member(GroupId id, NodeId node) {
  const auto group = std::ranges::lower_bound(groups_, id, {}, &Group::id);
  if (group == groups_.end() || group->id != id) return nullptr;
  const auto place = std::ranges::find(group->members, node, &Member::node);
  return place != group->members.end() ? &*place : nullptr;
}

void Meetings::foresee(std::size_t part, const port::TraceEvent& event) {
  if (!is_effect(event)) return;
  dispatch_record<port::JoinGroup>(event.record, [&](const port::JoinGroup& join) {
    auto group = std::ranges::lower_bound(groups_, join.group, {}, &Group::id);
    if (group == groups_.end() || group->id != join.group) group = groups_.insert(group, {join.group, {}});
    if (Member* known = member(join.group, event.node); known != nullptr) {
      known->part = part;
    } else {
      group->members.push_back({.node = event.node, .part = part});
    }
  });
}

void Meetings::see(const port::TraceEvent& event) {
  if (is_effect(event)) {
    dispatch_record<port::JoinGroup>(event.record, [&](const port::JoinGroup& join) {
      if (Member* one = member(join.group, event.node); one != nullptr) one->joined = true;
    });
    dispatch_record<port::PostBatch>(event.record, [&](const port::PostBatch& post) {
      Member* one = member(post.group, event.node);
      if (one != nullptr) one->open.push_back({post.batch, one->posted++, meets(post.kind)});
    });
  } else if (event.what == port::TraceWhat::kInput) {
    dispatch_record<port::BatchDone>(event.record, [&](const port::BatchDone& done) {
      Member* one = member(done.group, event.node);
      if (one != nullptr) std::erase_if(one->open, [&](const Post& post) { return post.batch == done.batch; });
    });
  }
}

std::size_t Meetings::awaited_end(const Group& group, const port::TraceEvent& event, BatchId batch,
                                  const std::vector<bool>& ended) {
  const auto own = std::ranges::find(group.members, event.node, &Member::node);
  if (own == group.members.end()) return kNobody;
  const auto post = std::ranges::find(own->open, batch, &Post::batch);
  if (post == own->open.end() || !post->meets) return kNobody;
  const auto late = std::ranges::find_if(
      group.members, [&](const Member& one) { return one.posted <= post->number && !ended[one.part]; });
  return late != group.members.end() ? late->part : kNobody;
}

std::size_t Meetings::awaited(const port::TraceEvent& event, const std::vector<bool>& ended) const {
  std::size_t part = kNobody;
  if (event.what != port::TraceWhat::kInput) return part;
  dispatch_record<port::BatchDone>(event.record, [&](const port::BatchDone& done) {
    const Group* group = find(done.group);
    if (group != nullptr && done.outcome == port::Outcome::kOk) part = awaited_end(*group, event, done.batch, ended);
  });
  dispatch_record<port::GroupJoined>(event.record, [&](const port::GroupJoined& joined) {
    const Group* group = find(joined.group);
    if (group == nullptr || joined.outcome != port::Outcome::kOk) return;
    const auto late =
        std::ranges::find_if(group->members, [&](const Member& one) { return !one.joined && !ended[one.part]; });
    if (late != group->members.end()) part = late->part;
  });
  return part;
}

}  // namespace areal::analyse
