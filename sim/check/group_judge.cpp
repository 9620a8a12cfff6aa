// Compares what the members of a group post, meeting by meeting.
#include "sim/check/group_judge.h"

namespace areal::sim {
namespace {

using port::BatchKind;
using port::PostBatch;

bool is_payload(BatchKind kind) { return kind == BatchKind::kSend || kind == BatchKind::kReceive; }

// Whether two batches may meet.
bool agree(const PostBatch& a, const PostBatch& b) {
  if (a.tag != b.tag || a.version != b.version || a.round != b.round || a.part != b.part) return false;
  if (is_payload(a.kind)) return is_payload(b.kind);
  if (a.kind != b.kind || a.dtype != b.dtype || a.elements != b.elements || a.bytes != b.bytes) return false;
  return a.kind != BatchKind::kBarrier || (a.value == b.value && a.count == b.count);
}

std::string words_of(const PostBatch& batch) {
  const std::string part = is_payload(batch.kind)             ? say(" of ", to_text(batch.round), " pass ", batch.part)
                           : batch.kind == BatchKind::kReduce ? say(" of window ", batch.part)
                                                              : std::string();
  return say(to_text(batch.kind), part, " with tag ", batch.tag, " of version ", batch.version, " (", batch.elements,
             " elements, ", batch.bytes, " bytes)");
}

bool size_fits(const PostBatch& batch) {
  const auto dtype = static_cast<std::size_t>(batch.dtype);
  if (dtype >= kDTypeCount) return false;
  // Counts are int32, and so are the indices that go with changed elements.
  constexpr std::uint64_t kIndexBytes = 4;
  switch (batch.round) {
    case port::Round::kDense:
      return batch.bytes == batch.elements * size_of(batch.dtype);
    case port::Round::kCounts:
      return batch.bytes == batch.elements * kIndexBytes;
    case port::Round::kData:
      return batch.bytes == batch.elements * (kIndexBytes + size_of(batch.dtype));
  }
  return false;
}

}  // namespace

std::span<const KindId> GroupJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::JoinGroup::kKind,    PostBatch::kKind,        port::BatchDone::kKind, port::AbortGroup::kKind,
      port::GroupAborted::kKind, port::LeaveGroup::kKind, Incarnations::kStarted, Incarnations::kChanged};
  return kWanted;
}

void GroupJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) {
    for (auto& entry : groups_) {
      if (member_of(entry.value, *gone) != nullptr) end_group(event, entry.value, out);
    }
  }
  if (record.kind == PostBatch::kKind) {
    on_post(event, from_record<PostBatch>(record), out);
  } else if (record.kind == port::BatchDone::kKind) {
    on_done(event, from_record<port::BatchDone>(record), out);
  } else if (record.kind == port::JoinGroup::kKind) {
    on_join(event, from_record<port::JoinGroup>(record), out);
  } else if (record.kind == port::LeaveGroup::kKind) {
    on_leave(event, from_record<port::LeaveGroup>(record).group, out);
  } else if (record.kind == port::AbortGroup::kKind || record.kind == port::GroupAborted::kKind) {
    if (Group* group = groups_.find(GroupId{record.words[0]})) end_group(event, *group, out);
  }
}

GroupJudge::Member* GroupJudge::member_of(Group& group, NodeId node) {
  const auto place = std::ranges::find(group.members, node, &Member::node);
  return place == group.members.end() ? nullptr : &*place;
}

void GroupJudge::end_group(const port::TraceEvent& event, Group& group, Violations& out) {
  if (group.ended) return;
  // What was posted before the end was posted in earnest: a disagreement may be why it ended.
  for (Meeting& meeting : group.meetings) judge_meeting(event, group, meeting, out);
  group.ended = true;
  group.meetings.clear();
}

bool GroupJudge::claims_wrongly(NodeId node, const port::JoinGroup& join) const {
  const JudgeNode* known = setup_->find(node);
  const std::uint32_t infer_ranks = setup_->infer_ranks();
  if (known == nullptr || join.world != infer_ranks + setup_->trainers()) return false;
  if (known->infer_rank != kNoRank) return known->infer_rank != join.rank;
  return known->train_rank != kNoRank && infer_ranks + known->train_rank != join.rank;
}

void GroupJudge::on_join(const port::TraceEvent& event, const port::JoinGroup& join, Violations& out) {
  Group& group = groups_[join.group];
  const auto blame = [&](NodeId node, const std::string& why) {
    Violation found =
        violation_at(InvariantId::kInv19, event, say(setup_->name_of(node), " joined group ", join.group, why));
    found.node = node;
    out.add(std::move(found));
  };
  if (group.members.empty()) {
    group.backend = join.backend;
    group.world = join.world;
  }
  if (join.rank >= join.world) blame(event.node, say(" as rank ", join.rank, " of a world of ", join.world));
  if (join.world != group.world) {
    blame(event.node, say(" with a world of ", join.world, "; others have ", group.world));
  }
  const auto taken = std::ranges::find(group.members, join.rank, &Member::rank);
  if (taken != group.members.end() && taken->node != event.node) {
    // Both claim the rank; the one that the declared layout gives another rank is wrong.
    const bool first_is_wrong = claims_wrongly(taken->node, join) && !claims_wrongly(event.node, join);
    const NodeId wrong = first_is_wrong ? taken->node : event.node;
    const NodeId other = first_is_wrong ? event.node : taken->node;
    blame(wrong, say(" as rank ", join.rank, ", which is ", setup_->name_of(other), "'s"));
  }
  Member* member = member_of(group, event.node);
  if (member == nullptr) member = &group.members.emplace_back();
  *member = {event.node, join.rank, member->posted};
}

void GroupJudge::on_post(const port::TraceEvent& event, const PostBatch& batch, Violations& out) {
  Group* group = groups_.find(batch.group);
  if (group == nullptr || group->ended) return;
  Member* member = member_of(*group, event.node);
  if (member == nullptr) return;
  const Posted post{event.seq, batch, false};
  const bool is_control = !is_payload(batch.kind) && batch.kind != BatchKind::kReduce;
  if (group->backend == port::Backend::kNccl && is_control) {
    report(event, InvariantId::kGlooCtrl, *member, post, " on an NCCL group", out);
  }
  if (is_payload(batch.kind) && !size_fits(batch)) {
    report(event, InvariantId::kXferDtype, *member, post, say(": not its elements in ", to_text(batch.dtype)), out);
  }
  const std::uint64_t number = member->posted++;
  if (number < group->first) return;
  const std::size_t index = number - group->first;
  if (index >= group->meetings.size()) group->meetings.resize(index + 1);
  Meeting& meeting = group->meetings[index];
  meeting.posts.resize(group->world);
  const auto place = static_cast<std::size_t>(member - group->members.data());
  if (place >= meeting.posts.size()) return;
  meeting.posts[place] = post;
  if (++meeting.posted == group->world) judge_meeting(event, *group, meeting, out);
}

void GroupJudge::on_done(const port::TraceEvent& event, const port::BatchDone& done, Violations& out) {
  Group* group = groups_.find(done.group);
  if (group == nullptr || group->ended) return;
  if (done.outcome != port::Outcome::kOk) return end_group(event, *group, out);
  Member* member = member_of(*group, event.node);
  if (member == nullptr) return;
  const auto place = static_cast<std::size_t>(member - group->members.data());
  for (Meeting& meeting : group->meetings) {
    if (place >= meeting.posts.size()) continue;
    Posted& post = meeting.posts[place];
    if (post.seq == 0 || post.done || post.batch.batch != done.batch) continue;
    post.done = true;
    ++meeting.done;
    // Payload moves pair by pair: a member is done when its own peers are. Everything else is a meeting of all.
    const port::BatchKind kind = post.batch.kind;
    const bool pairs = kind == port::BatchKind::kSend || kind == port::BatchKind::kReceive;
    if (!pairs && meeting.posted < group->world) {
      std::string missing;
      for (std::size_t i = 0; i < group->members.size(); ++i) {
        if (meeting.posts[i].seq == 0) missing += " " + setup_->name_of(group->members[i].node);
      }
      report(event, InvariantId::kInv6, *member, post,
             say(" was done when ", meeting.posted, " of ", group->world, " members had posted; missing:", missing),
             out);
    }
    break;
  }
  std::size_t over = 0;
  while (over < group->meetings.size() && group->meetings[over].done == group->world) ++over;
  group->meetings.erase(group->meetings.begin(), group->meetings.begin() + static_cast<std::ptrdiff_t>(over));
  group->first += over;
}

void GroupJudge::on_leave(const port::TraceEvent& event, GroupId id, Violations& out) {
  Group* group = groups_.find(id);
  if (group == nullptr || group->ended) return;
  Member* member = member_of(*group, event.node);
  if (member == nullptr) return;
  const auto place = static_cast<std::size_t>(member - group->members.data());
  for (const Meeting& meeting : group->meetings) {
    if (place >= meeting.posts.size() || meeting.posts[place].seq == 0 || meeting.posts[place].done) continue;
    report(event, InvariantId::kInv6, *member, meeting.posts[place], " was under way when it left the group", out);
  }
  end_group(event, *group, out);
}

void GroupJudge::report(const port::TraceEvent& event, InvariantId invariant, const Member& member, const Posted& post,
                        const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event,
                                 say(setup_->name_of(member.node), " (rank ", member.rank, " of group ",
                                     post.batch.group, "): ", words_of(post.batch), why));
  found.node = member.node;
  found.version = post.batch.version;
  found.related.push_back(post.seq);
  out.add(std::move(found));
}

void GroupJudge::judge_meeting(const port::TraceEvent& event, const Group& group, Meeting& meeting,
                               Violations& out) const {
  if (meeting.judged || meeting.posted < 2) return;
  meeting.judged = true;
  // What most posted is right; in a tie, what came first.
  const Posted* best = nullptr;
  std::size_t most = 0;
  for (const Posted& candidate : meeting.posts) {
    if (candidate.seq == 0) continue;
    const auto same = static_cast<std::size_t>(std::ranges::count_if(
        meeting.posts, [&](const Posted& post) { return post.seq != 0 && agree(post.batch, candidate.batch); }));
    if (same > most || (same == most && candidate.seq < best->seq)) best = &candidate, most = same;
    if (most == meeting.posted) break;
  }
  if (best == nullptr) return;
  if (most == meeting.posted) {
    if (meeting.posted == group.world) judge_sizes(event, group, meeting, out);
    return;
  }
  for (std::size_t i = 0; i < group.members.size() && i < meeting.posts.size(); ++i) {
    const Posted& post = meeting.posts[i];
    if (post.seq == 0 || agree(post.batch, best->batch)) continue;
    const std::string why = say(", where ", most, " of ", meeting.posted, " members posted ", words_of(best->batch));
    report(event, InvariantId::kInv6, group.members[i], post, why, out);
    if (group.backend == port::Backend::kGloo) {
      report(event, InvariantId::kGlooOrder, group.members[i], post, why, out);
    }
  }
}

void GroupJudge::judge_sizes(const port::TraceEvent& event, const Group& group, const Meeting& meeting,
                             Violations& out) const {
  if (meeting.posts.empty() || !is_payload(meeting.posts.front().batch.kind)) return;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  const Posted* receiver = nullptr;
  bool any_sends = false;
  for (const Posted& post : meeting.posts) {
    const bool sends = post.batch.kind == BatchKind::kSend;
    (sends ? sent : received) += post.batch.elements;
    (sends ? bytes_sent : bytes_received) += post.batch.bytes;
    if (!sends && receiver == nullptr) receiver = &post;
    any_sends = any_sends || sends;
  }
  // In a ring everybody both sends and receives, and posts one batch for it.
  if (receiver == nullptr || !any_sends) return;
  bool dtypes_differ = false;
  for (std::size_t i = 0; i < meeting.posts.size(); ++i) {
    const Posted& post = meeting.posts[i];
    // The wire has the receiver's dtype.
    if (post.batch.kind != BatchKind::kSend || post.batch.dtype == receiver->batch.dtype) continue;
    if (post.batch.elements == 0) continue;
    dtypes_differ = true;
    report(event, InvariantId::kXferDtype, group.members[i], post,
           say(" as ", to_text(post.batch.dtype), "; receivers expect ", to_text(receiver->batch.dtype)), out);
  }
  if (dtypes_differ || (sent == received && bytes_sent == bytes_received)) return;
  // Totals do not tell who is wrong.
  const bool only_bytes = sent == received;
  const bool is_sparse = meeting.posts.front().batch.round != port::Round::kDense;
  const InvariantId unequal = is_sparse ? InvariantId::kDeltaNnzSlots : InvariantId::kInv6;
  Violation found = violation_at(
      only_bytes ? InvariantId::kXferDtype : unequal, event,
      say("group ", meeting.posts.front().batch.group, ", tag ", meeting.posts.front().batch.tag, ": senders send ",
          sent, " elements (", bytes_sent, " bytes), receivers expect ", received, " (", bytes_received, " bytes)"));
  found.node = {};
  found.version = meeting.posts.front().batch.version;
  out.add(std::move(found));
}

}  // namespace areal::sim
