// Follows each rank through the passes of an attempt and compares them.
#include "sim/check/rounds_judge.h"

#include "sim/check/group_ids.h"

namespace areal::sim {
namespace {

using port::Round;

std::uint64_t mark_of(const port::PostBatch& batch) {
  return (static_cast<std::uint64_t>(batch.round) << 40) | (std::uint64_t{batch.part} << 8) |
         static_cast<std::uint64_t>(batch.dtype);
}
bool is_dense(std::uint64_t mark) { return mark >> 40 == static_cast<std::uint64_t>(Round::kDense); }

// "counts 0 int32, data 0 bfloat16".
std::string words_of(const std::vector<std::uint64_t>& marks) {
  std::string text;
  for (const std::uint64_t mark : marks) {
    text += say(text.empty() ? "" : ", ", to_text(static_cast<Round>(mark >> 40)), " ", (mark >> 8) & 0xFFFFFFFF, " ",
                to_text(static_cast<DType>(mark & 0xFF)));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::span<const KindId> RoundsJudge::interest() const {
  static constexpr std::array<KindId, 7> kWanted{
      port::CollectiveEntered::kKind, port::DeltaVoted::kKind, port::PostBatch::kKind, port::BatchDone::kKind,
      port::UpdateEnded::kKind,       Incarnations::kStarted,  Incarnations::kChanged};
  if (!setup_->delta) return {};
  return kWanted;
}

void RoundsJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  last_ = event;
  if (const auto gone = incarnations_.renewed(event)) members_.erase(*gone);
  if (record.kind == port::CollectiveEntered::kKind) {
    const AttemptKey key = key_of(from_record<port::CollectiveEntered>(record));
    if (key.epoch < key_.epoch) return;
    if (key != key_) {
      close(event, out);
      key_ = key;
    }
    members_[event.node].course = {event.node, {}, false, event.seq};
  } else if (record.kind == port::DeltaVoted::kKind) {
    const auto voted = from_record<port::DeltaVoted>(record);
    Member* member = members_.find(event.node);
    if (member != nullptr && key_of(voted) == key_) member->voted = voted.mode;
  } else if (record.kind == port::PostBatch::kKind) {
    on_post(event, from_record<port::PostBatch>(record), out);
  } else if (record.kind == port::BatchDone::kKind) {
    const auto done = from_record<port::BatchDone>(record);
    Member* member = members_.find(event.node);
    if (member == nullptr || done.group != payload_group_of(key_.epoch) || done.batch != member->counts_batch) return;
    if (done.outcome == port::Outcome::kOk) member->counted = done.value;
  } else if (record.kind == port::UpdateEnded::kKind) {
    if (key_of(from_record<port::UpdateEnded>(record)) == key_) close(event, out);
  }
}

void RoundsJudge::on_post(const port::TraceEvent& event, const port::PostBatch& batch, Violations& out) {
  Member* member = members_.find(event.node);
  if (member == nullptr || batch.version != key_.version) return;
  if (batch.group == control_group_of(key_.epoch) && batch.kind == port::BatchKind::kSum) member->course.over = true;
  const bool is_payload = batch.kind == port::BatchKind::kSend || batch.kind == port::BatchKind::kReceive;
  if (batch.group == payload_group_of(key_.epoch) && is_payload) on_pass(event, batch, *member, out);
}

void RoundsJudge::on_pass(const port::TraceEvent& event, const port::PostBatch& batch, Member& member,
                          Violations& out) const {
  member.course.marks.push_back(mark_of(batch));
  member.course.seq = event.seq;
  (batch.round == Round::kDense ? member.dense : member.sparse) = true;
  if (member.dense && member.sparse) {
    report(event, InvariantId::kDeltaUnanimous, member.course,
           say(" ran dense passes and sparse ones: ", words_of(member.course.marks)), out);
  }
  if (batch.round == Round::kCounts) {
    member.counts_batch = batch.batch;
    member.counted.reset();
  }
  if (batch.round != Round::kData || batch.kind != port::BatchKind::kReceive || !member.counted.has_value()) return;
  if (*member.counted == batch.elements) return;
  report(event, InvariantId::kDeltaNnzSlots, member.course,
         say(" was told of ", *member.counted, " elements of pass ", batch.part, " and receives ", batch.elements),
         out);
}

void RoundsJudge::close(const port::TraceEvent& event, Violations& out) {
  judge_votes(event, out);
  judge_passes(event, out);
  members_.clear();
}

void RoundsJudge::judge_votes(const port::TraceEvent& event, Violations& out) const {
  std::vector<Course> votes;
  for (const auto& [node, member] : members_) {
    if (!member.voted.has_value()) continue;
    votes.push_back({node, {static_cast<std::uint64_t>(*member.voted)}, true, member.course.seq});
    const bool ran_other = *member.voted == port::UpdateMode::kDelta ? member.dense : member.sparse;
    if (!ran_other) continue;
    report(event, InvariantId::kDeltaUnanimous, member.course,
           say(" came to a ", to_text(*member.voted), " update and ran ", words_of(member.course.marks)), out);
  }
  const OddOnes odd = find_odd_ones(votes);
  for (const Course* vote : odd.found) {
    report(event, InvariantId::kDeltaUnanimous, *vote,
           say(" came to a ", to_text(static_cast<port::UpdateMode>(vote->marks.front())), " update, most ranks to a ",
               to_text(static_cast<port::UpdateMode>(odd.rule->marks.front())), " one"),
           out);
  }
}

void RoundsJudge::judge_passes(const port::TraceEvent& event, Violations& out) const {
  std::vector<Course> courses;
  for (const auto& [node, member] : members_) courses.push_back(member.course);
  const OddOnes odd = find_odd_ones(courses);
  for (const Course* course : odd.found) {
    const bool other_way = !course->marks.empty() && !odd.rule->marks.empty() &&
                           is_dense(course->marks.front()) != is_dense(odd.rule->marks.front());
    const std::string why = say(" ran ", words_of(course->marks), course->over ? " and went on" : "", "; ",
                                setup_->name_of(odd.rule->node), ", as most, ran ", words_of(odd.rule->marks));
    report(event, other_way ? InvariantId::kDeltaUnanimous : InvariantId::kDeltaDtypeRounds, *course, why, out);
    report(event, InvariantId::kInv6, *course, why, out);
  }
}

void RoundsJudge::report(const port::TraceEvent& event, InvariantId invariant, const Course& who,
                         const std::string& why, Violations& out) const {
  Violation found =
      violation_at(invariant, event,
                   say(setup_->name_of(who.node), why, " (version ", key_.version, ", attempt ", key_.attempt, ")"));
  found.node = who.node;
  found.version = key_.version;
  found.related.push_back(who.seq);
  out.add(std::move(found));
}

void RoundsJudge::at_end(bool /*finished*/, Violations& out) { close(last_, out); }

}  // namespace areal::sim
