// Follows each trainer through the windows of a reconstruction.
#include "sim/check/window_judge.h"

#include "sim/check/group_ids.h"

namespace areal::sim {

std::span<const KindId> WindowJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::CollectiveEntered::kKind, port::PostBatch::kKind,   port::WindowCompared::kKind, port::DeltaVoted::kKind,
      port::DeltaPacked::kKind,       port::UpdateEnded::kKind, Incarnations::kStarted,      Incarnations::kChanged};
  if (!setup_->delta) return {};
  return kWanted;
}

void WindowJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  last_ = event;
  if (const auto gone = incarnations_.renewed(event)) members_.erase(*gone);
  if (record.kind == port::CollectiveEntered::kKind) {
    const AttemptKey key = key_of(from_record<port::CollectiveEntered>(record));
    const JudgeNode* node = setup_->find(event.node);
    if (key.epoch < key_.epoch || node == nullptr || node->train_rank == kNoRank) return;
    if (key != key_) {
      close(event, out);
      key_ = key;
    }
    members_[event.node] = {{event.node, {}, false, event.seq}, 0};
  } else if (record.kind == port::PostBatch::kKind) {
    on_post(event, from_record<port::PostBatch>(record), out);
  } else if (record.kind == port::WindowCompared::kKind) {
    on_compared(event, from_record<port::WindowCompared>(record), out);
  } else if (record.kind == port::DeltaVoted::kKind) {
    Member* member = members_.find(event.node);
    if (member != nullptr && key_of(from_record<port::DeltaVoted>(record)) == key_) member->course.over = true;
  } else if (record.kind == port::DeltaPacked::kKind) {
    on_packed(event, from_record<port::DeltaPacked>(record), out);
  } else if (record.kind == port::UpdateEnded::kKind) {
    if (key_of(from_record<port::UpdateEnded>(record)) == key_) close(event, out);
  }
}

void WindowJudge::begin_window(Course& course, std::uint64_t window, std::uint64_t seq) {
  course.seq = seq;
  if (std::ranges::find(course.marks, window) == course.marks.end()) course.marks.push_back(window);
}

void WindowJudge::on_post(const port::TraceEvent& event, const port::PostBatch& batch, Violations& out) {
  Member* member = members_.find(event.node);
  if (member == nullptr) return;
  if (batch.group == vote_group_of(key_.epoch) && batch.kind == port::BatchKind::kMax) {
    if (++member->votes == 2) member->course.over = true;
  }
  if (!is_replica_group(batch.group) || batch.kind != port::BatchKind::kReduce) return;
  begin_window(member->course, batch.part, event.seq);
  if (batch.elements % 2 == 0) return;
  report(event, InvariantId::kDeltaCollCount, key_.version,
         say(" posted ", batch.elements, " reductions for window ", batch.part, ": not two a parameter"), out);
}

void WindowJudge::on_compared(const port::TraceEvent& event, const port::WindowCompared& compared, Violations& out) {
  Member* member = members_.find(event.node);
  if (member != nullptr && key_of(compared) == key_) begin_window(member->course, compared.window, event.seq);
  if (compared.pending == 0) return;
  report(event, InvariantId::kDeltaQuietYield, compared.version,
         say(" handed window ", compared.window, " on while ", compared.pending, " of its reductions were pending"),
         out);
}

void WindowJudge::on_packed(const port::TraceEvent& event, const port::DeltaPacked& packed, Violations& out) const {
  if (packed.missed == 0) return;
  report(event, InvariantId::kDeltaSuperset, packed.version,
         say(" sends ", packed.elements, " changed elements of version ", packed.version, " and leaves ", packed.missed,
             " out that differ from what the engines hold"),
         out);
}

void WindowJudge::close(const port::TraceEvent& event, Violations& out) {
  std::vector<Course> courses;
  for (const auto& [node, member] : members_) courses.push_back(member.course);
  const OddOnes odd = find_odd_ones(courses);
  for (const Course* course : odd.found) {
    for (const InvariantId invariant : {InvariantId::kDeltaCollCount, InvariantId::kInv6}) {
      Violation found =
          violation_at(invariant, event,
                       say(setup_->name_of(course->node), " reconstructed ", course->marks.size(),
                           " windows of version ", key_.version, course->over ? " and went on to vote, " : ", ",
                           setup_->name_of(odd.rule->node), ", as most, has begun ", odd.rule->marks.size()));
      found.node = course->node;
      found.version = key_.version;
      found.related.push_back(course->seq);
      out.add(std::move(found));
    }
  }
  members_.clear();
}

void WindowJudge::report(const port::TraceEvent& event, InvariantId invariant, Version version, const std::string& why,
                         Violations& out) const {
  Violation found = violation_at(invariant, event, setup_->name_of(event.node) + why);
  found.version = version;
  out.add(std::move(found));
}

void WindowJudge::at_end(bool /*finished*/, Violations& out) { close(last_, out); }

}  // namespace areal::sim
